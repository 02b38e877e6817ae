package main

import (
{% if tls %}
	"crypto/tls"
	"crypto/x509"
{% endif %}
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

const call = {{ call }}

func main() {
{% include "tls.go" %}
	request, err := http.NewRequest("POST", {{ address|lit }}, strings.NewReader(call))
	check(err)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("CONSUMER_SECRET"))
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	check(err)
	fmt.Println(answer.Status, answer.Header.Get("x-farthing-charged"), "USDC charged")
	fmt.Println(string(body))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
