# frozen_string_literal: true

# One call, and what it cost. Set CONSUMER_SECRET and FARTHING_CA_FILE, then: ruby -Ilib examples/first_call.rb

require "{{ package.snake }}"

client = {{ package.pascal }}::Client.new
{% if example %}
answer = client.{{ example.name }}{% if example.example %}({% for a in example.example %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.pascal }}::{{ a.choice_type }}::{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %}){% endif %}

{% else %}
answer = client.call("GET", "/")
{% endif %}
puts "#{answer.body.bytesize} bytes for #{answer.charged} USDC, receipt #{answer.receipt}"
