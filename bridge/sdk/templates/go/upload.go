package main

import (
	"bytes"
{% if tls %}
	"crypto/tls"
	"crypto/x509"
{% endif %}
	"fmt"
	"io"
{% if is_form %}
	"mime/multipart"
{% endif %}
	"net/http"
	"os"
)

func main() {
{% include "tls.go" %}
{% if file %}
	content, err := os.ReadFile({{ file.name|lit }})
	check(err)
	body := bytes.NewReader(content)
	contentType := {{ file.content_type|lit }}
{% else %}
	body := &bytes.Buffer{}
	form := multipart.NewWriter(body)
{% for part in parts %}
{% if part.is_file %}
	addFile(form, {{ part.name|lit }}, {{ part.value|lit }})
{% else %}
	check(form.WriteField({{ part.name|lit }}, {{ part.value|lit }}))
{% endif %}
{% endfor %}
	check(form.Close())
	contentType := form.FormDataContentType()
{% endif %}
	request, err := http.NewRequest({{ method|lit }}, {{ address|lit }}, body)
	check(err)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("CONSUMER_SECRET"))
	request.Header.Set("Content-Type", contentType)
{% for header in headers %}
	request.Header.Set({{ header.name|lit }}, {{ header.value|lit }})
{% endfor %}
	answer, err := client.Do(request)
	check(err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	check(err)
	fmt.Println(answer.Status, answer.Header.Get("x-farthing-charged"), "USDC charged")
	fmt.Println(string(said))
}
{% if is_form %}

func addFile(form *multipart.Writer, name, file string) {
	content, err := os.ReadFile(file)
	check(err)
	part, err := form.CreateFormFile(name, file)
	check(err)
	_, err = part.Write(content)
	check(err)
}
{% endif %}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
