# frozen_string_literal: true

# What is written and read exactly, and what errors tell: see tests/tests/sdk.

require "things"

client = Things::Client.new
dog = Things::Dog.new(kind: "dog", name: "Rex")
sent = Things::Thing.new(
  label: "ruby", count: 2**53 + 1, huge: 2**64 - 1, nullable: nil, both: nil, pet: dog, loose: 7
)
answer = client.keep_thing(body: sent)
kept = answer.value
abort "it is not what was sent" unless kept.nullable.nil? && kept.both.nil? && kept.optional.nil?
puts "exact #{kept.count} #{kept.huge} #{kept.pet.name} #{kept.loose} #{answer.charged}"

begin
  client.get_thing(id: "missing")
rescue Things::ServiceError => e
  puts "missing #{e.answer.status} #{e.charged}"
end
begin
  Things::Client.new(base_url: ENV.fetch("DROPPING_THINGS_URL"), max_retries: 0).get_thing(id: "long")
rescue Things::ConnectionFailed => e
  puts "unknown #{e.charged.nil? ? 'null' : e.charged}"
end

{ "dripping" => "", "dripping-headers" => "/headers" }.each do |name, path|
  Things::Client.new(base_url: ENV.fetch("DRIPPING_URL") + path, timeout: 2, max_retries: 0).get_thing(id: "slow")
rescue Things::FarthingError => e
  puts "#{name} #{e.charged.nil? ? 'null' : e.charged}"
end
ENV.fetch("LEAVING_URLS").split.each do |node|
  name, url = node.split("=")
  Things::Client.new(base_url: url, max_retries: 1).get_thing(id: "gone")
rescue Things::FarthingError => e
  puts "#{name} #{e.charged.nil? ? 'null' : e.charged}"
end
[
  { timeout: 0 }, { timeout: "2" }, { max_retries: -1 }, { max_price: "1e-05" }, { max_price: 0.00001 },
  { base_url: "https://localhost:notaport" }, { base_url: "http://127.0.0.1.example.com" },
  { base_url: "https://localhost:3000/?x" }, { base_url: "https://u:p@localhost:3000" }, { secret: "a\nb" },
  { ca_file: "/nothing/here" }
].each do |setting|
  begin
    Things::Client.new(**setting)
  rescue ArgumentError => e
    next if e.message.start_with?(setting.keys[0].to_s)
  end
  abort "#{setting} is taken: #{e&.message}"
end
puts "settings refused"
