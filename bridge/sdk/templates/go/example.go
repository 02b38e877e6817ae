// An example of a call. Set CONSUMER_SECRET and FARTHING_CA_FILE, then: go run ./example
package main

import (
	"context"
	"fmt"
	"log"

	{{ package.flat }} "{{ package.name }}"
)

func main() {
	client, err := {{ package.flat }}.New({{ package.flat }}.Config{})
	if err != nil {
		log.Fatal(err)
	}
{% if example %}
	answer, err := client.{{ example.name }}(context.Background(){% if example.params %}, {{ package.flat }}.{{ example.params_type }}{{ "{" }}{% for a in example.example %}{{ a.name }}: {% if not a.required %}{{ package.flat }}.Ptr[{{ package.flat ~ "." if a.type.name }}{{ a.type.bare }}]({% endif %}{% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.flat }}.{{ a.choice_type }}_{{ a.choice }}{% endif %}{% if not a.required %}){% endif %}{{ ", " if not loop.last else "" }}{% endfor %}{{ "}" }}{% endif %})
{% else %}
	answer, err := client.Call(context.Background(), "GET", "/", nil, nil)
{% endif %}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes for %s USDC, receipt %s\n", len(answer.Body), answer.Charged, answer.Receipt)
}
