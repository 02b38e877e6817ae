// An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"sizes"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	const name = `a "dot".png`
	ctx := context.Background()
	client := must(sizes.New(sizes.Config{}))
	content := must(os.ReadFile(name))
	form := sizes.ImageSizeForm{
		Image: sizes.Upload{Content: content, Name: name, MediaType: "image/png"},
		Note:  sizes.Ptr("Z\u00fcrich --farthing-sizego"),
	}
	answer := must(client.ImageSize(ctx, form))
	size := answer.Value
	fmt.Println("form", size.Width, size.Height, size.Type, *size.File, *size.Note == *form.Note, size.Bytes, answer.Charged)
	answer = must(client.RawImageSize(ctx, content))
	size = answer.Value
	fmt.Println("raw", size.Width, size.Height, size.Type, size.Bytes, answer.Charged)
	for range 2 {
		fmt.Println("again", must(client.ImageSize(ctx, form, sizes.WithCallID("size-go"))).Value.Width)
	}
}
