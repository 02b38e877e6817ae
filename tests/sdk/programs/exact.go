// Writes and reads exactly, and tells what errors tell: see tests/tests/sdk.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"time"

	"things"
)

func main() {
	ctx := context.Background()
	client, err := things.New(things.Config{})
	if err != nil {
		log.Fatal(err)
	}
	sent := things.Thing{
		Label: "go", Count: 9007199254740993, Huge: things.Ptr(uint64(18446744073709551615)), Both: things.Null[int64](),
		Pet:   &things.Pet{Dog: &things.Dog{Kind: "dog", Name: "Rex"}},
		Loose: &things.ThingLoose{Integer: things.Ptr(int64(7))},
	}
	answer, err := client.KeepThing(ctx, sent)
	if err != nil {
		log.Fatal(err)
	}
	kept := answer.Value
	if kept.Nullable != nil || kept.Optional != nil || !reflect.DeepEqual(kept.Both, sent.Both) {
		log.Fatalf("%+v", kept)
	}
	fmt.Println("exact", kept.Count, *kept.Huge, kept.Pet.Dog.Name, *kept.Loose.Integer, answer.Charged)

	var failed *things.Error
	if _, err = client.GetThing(ctx, things.GetThingParams{ID: "missing"}); !errors.As(err, &failed) || failed.Kind != things.ServiceError {
		log.Fatal(err)
	}
	fmt.Println("missing", failed.Status, *failed.Charged)
	lossy, err := things.New(things.Config{BaseURL: os.Getenv("DROPPING_THINGS_URL"), MaxRetries: -1})
	if err != nil {
		log.Fatal(err)
	}
	if _, err = lossy.GetThing(ctx, things.GetThingParams{ID: "long"}); !errors.As(err, &failed) || failed.Charged != nil {
		log.Fatal(err)
	}
	fmt.Println("unknown null")

	for _, way := range [][2]string{{"dripping", ""}, {"dripping-headers", "/headers"}} {
		slow, err := things.New(things.Config{BaseURL: os.Getenv("DRIPPING_URL") + way[1], Timeout: 2 * time.Second, MaxRetries: -1})
		if err != nil {
			log.Fatal(err)
		}
		if _, err = slow.GetThing(ctx, things.GetThingParams{ID: "slow"}); !errors.As(err, &failed) || failed.Charged != nil {
			log.Fatal(way, err)
		}
		fmt.Println(way[0], "null")
	}
	for _, node := range strings.Fields(os.Getenv("LEAVING_URLS")) {
		name, url, _ := strings.Cut(node, "=")
		leaving, err := things.New(things.Config{BaseURL: url, MaxRetries: 1})
		if err != nil {
			log.Fatal(err)
		}
		if _, err = leaving.GetThing(ctx, things.GetThingParams{ID: "gone"}); !errors.As(err, &failed) {
			log.Fatal(name, err)
		}
		if failed.Charged == nil {
			fmt.Println(name, "null")
		} else {
			fmt.Println(name, *failed.Charged)
		}
	}
	for _, refused := range []struct {
		named  string
		config things.Config
	}{
		{"Timeout", things.Config{Timeout: -time.Second}},
		{"MaxPrice", things.Config{MaxPrice: "1e-05"}},
		{"BaseURL", things.Config{BaseURL: "https://localhost:notaport"}},
		{"BaseURL", things.Config{BaseURL: "http://127.0.0.1.example.com"}},
		{"BaseURL", things.Config{BaseURL: "https://localhost:3000/?x"}},
		{"BaseURL", things.Config{BaseURL: "https://u:p@localhost:3000"}},
		{"Secret", things.Config{Secret: "a\nb"}},
		{"CAFile", things.Config{CAFile: "/nothing/here"}},
	} {
		if _, err := things.New(refused.config); err == nil || !strings.HasPrefix(err.Error(), refused.named) {
			log.Fatal(refused.named, err)
		}
	}
	fmt.Println("settings refused")
}
