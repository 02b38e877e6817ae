# frozen_string_literal: true

# What can be told without a node: ruby -Ilib test/client_test.rb

require "{{ package.snake }}"

begin
  {{ package.pascal }}::Client.new(base_url: "http://node.example", secret: "a-secret")
  abort "the secret must not travel in the open"
rescue ArgumentError
  # As it must be.
end

client = {{ package.pascal }}::Client.new(base_url: "https://127.0.0.1:1", secret: "a-secret", max_retries: 0)
abort "the secret must not be shown" if client.inspect.include?("a-secret")
begin
  client.call("GET", "/")
  abort "nobody is there"
rescue {{ package.pascal }}::ConnectionFailed => e
  abort "it must cost nothing" unless e.charged == false
end
puts "passed"
