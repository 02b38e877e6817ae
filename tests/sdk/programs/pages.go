// All pages, two of them, and one that is too dear: see tests/tests/sdk.
package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"

	"shelf"
)

func show(what string, books iter.Seq2[shelf.Book, error]) {
	for book, err := range books {
		if err != nil {
			log.Fatal(err)
		}
		what += fmt.Sprint(" ", book.ID)
	}
	fmt.Println(what)
}

func main() {
	ctx := context.Background()
	client, err := shelf.New(shelf.Config{})
	if err != nil {
		log.Fatal(err)
	}
	show("cursor", client.IterateByCursor(ctx, shelf.ByCursorParams{Limit: 2}))
	show("page", client.IterateByPage(ctx, shelf.ByPageParams{Limit: 2}))
	show("offset", client.IterateByOffset(ctx, shelf.ByOffsetParams{Limit: 2}, shelf.WithMaxPages(2)))
	for _, err := range client.IterateByPage(ctx, shelf.ByPageParams{Limit: 2}, shelf.WithMaxPrice("0.0001")) {
		var failed *shelf.Error
		if !errors.As(err, &failed) {
			log.Fatal("it must be refused")
		}
		fmt.Println("pages-budget", failed.Code, *failed.Charged)
	}
}
