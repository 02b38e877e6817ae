# frozen_string_literal: true

# What every language does: see tests/tests/sdk.

require "quakes"
require "planets"

def refused(what, named)
  yield
  abort "#{what}: no error"
rescue Quakes::FarthingError, Planets::FarthingError => e
  code = e.is_a?(Quakes::NodeError) || e.is_a?(Planets::NodeError) ? e.code : ""
  puts "#{what} #{code} #{e.charged.inspect} #{e.message.include?(named)}"
end

# docs: begin
client = Quakes::Client.new # CONSUMER_SECRET and FARTHING_CA_FILE are set
answer = client.recent_earthquakes(limit: 3)
answer.value.features.each { |event| puts "#{event.properties.place} #{event.properties.mag}" }
puts "paid #{answer.charged} USDC, receipt #{answer.receipt}"
# docs: end
first = answer.value.features.first
magnitude = (first.properties.mag * 10).round
puts "recent #{answer.value.features.size} #{first.id} #{first.properties.time} #{magnitude} #{answer.charged}"

many = Quakes::Client.new(base_url: ENV.fetch("DROPPING_URL")).recent_earthquakes(limit: 40)
puts "again #{many.value.features.size} #{many.charged}"

refused("refused", "limit") { client.recent_earthquakes(limit: 0) }
refused("budget", "") { Quakes::Client.new(max_price: "0.001").recent_earthquakes }
refused("untrusted", "") { Quakes::Client.new(ca_file: ENV.fetch("WRONG_CA_FILE")).recent_earthquakes }

stars = Planets::Client.new
found = stars.planets(discovery_method: "Transit", limit: 2)
puts "planets #{found.value.size} #{found.value[0].name} #{found.value[0].discovery_year} #{found.charged}"

others = Planets::Client.new(base_url: ENV.fetch("DROPPING_PLANETS_URL")).planets(limit: 40)
puts "planets-again #{others.value.size} #{others.charged}"

refused("planets-refused", "fields") { stars.planets(fields: "nothing") }
refused("planets-budget", "") { Planets::Client.new(max_price: "0.001").planets }
refused("planets-untrusted", "") { Planets::Client.new(ca_file: ENV.fetch("WRONG_CA_FILE")).planets }

chosen = stars.call("GET", "/planets", { limit: 1, fields: %w[name discoveryYear] })
puts "chosen #{chosen.value.size} #{chosen.value[0].size} #{chosen.charged}"
