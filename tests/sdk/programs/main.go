package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"strings"

	"planets"
	"quakes"
)

func refused(what, named string, err error) {
	var code string
	var charged *bool
	var ofQuakes *quakes.Error
	var ofPlanets *planets.Error
	switch {
	case errors.As(err, &ofQuakes):
		code, charged = ofQuakes.Code, ofQuakes.Charged
	case errors.As(err, &ofPlanets):
		code, charged = ofPlanets.Code, ofPlanets.Charged
	}
	if charged == nil {
		log.Fatalf("%s: %v", what, err)
	}
	fmt.Println(what, code, *charged, strings.Contains(err.Error(), named))
}

func stars(config planets.Config) *planets.Client {
	client, err := planets.New(config)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func client(config quakes.Config) *quakes.Client {
	client, err := quakes.New(config)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func main() {
	ctx := context.Background()
	// docs: begin
	quake, err := quakes.New(quakes.Config{}) // CONSUMER_SECRET and FARTHING_CA_FILE are set
	if err != nil {
		log.Fatal(err)
	}
	answer, err := quake.RecentEarthquakes(ctx, quakes.RecentEarthquakesParams{Limit: quakes.Ptr(int32(3))})
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range answer.Value.Features {
		fmt.Println(*event.Properties.Place, *event.Properties.Mag)
	}
	fmt.Println("paid", answer.Charged, "USDC, receipt", answer.Receipt)
	// docs: end
	first := answer.Value.Features[0]
	fmt.Println("recent", len(answer.Value.Features), first.ID, first.Properties.Time, math.Round(*first.Properties.Mag*10), answer.Charged)

	dropping := client(quakes.Config{BaseURL: os.Getenv("DROPPING_URL")})
	many, err := dropping.RecentEarthquakes(ctx, quakes.RecentEarthquakesParams{Limit: quakes.Ptr(int32(40))})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("again", len(many.Value.Features), many.Charged)

	_, err = quake.RecentEarthquakes(ctx, quakes.RecentEarthquakesParams{Limit: quakes.Ptr(int32(0))})
	refused("refused", "limit", err)
	_, err = client(quakes.Config{MaxPrice: "0.001"}).RecentEarthquakes(ctx, quakes.RecentEarthquakesParams{})
	refused("budget", "", err)
	_, err = client(quakes.Config{CAFile: os.Getenv("WRONG_CA_FILE")}).RecentEarthquakes(ctx, quakes.RecentEarthquakesParams{})
	refused("untrusted", "", err)

	star := stars(planets.Config{})
	found, err := star.Planets(ctx, planets.PlanetsParams{DiscoveryMethod: planets.Ptr("Transit"), Limit: planets.Ptr(int32(2))})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("planets", len(found.Value), *found.Value[0].Name, *found.Value[0].DiscoveryYear, found.Charged)

	others, err := stars(planets.Config{BaseURL: os.Getenv("DROPPING_PLANETS_URL")}).Planets(ctx, planets.PlanetsParams{Limit: planets.Ptr(int32(40))})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("planets-again", len(others.Value), others.Charged)

	_, err = star.Planets(ctx, planets.PlanetsParams{Fields: planets.Ptr("nothing")})
	refused("planets-refused", "fields", err)
	_, err = stars(planets.Config{MaxPrice: "0.001"}).Planets(ctx, planets.PlanetsParams{})
	refused("planets-budget", "", err)
	_, err = stars(planets.Config{CAFile: os.Getenv("WRONG_CA_FILE")}).Planets(ctx, planets.PlanetsParams{})
	refused("planets-untrusted", "", err)
}
