# frozen_string_literal: true

# All pages, two of them, and one that is too dear: see tests/tests/sdk.

require "shelf"

client = Shelf::Client.new
puts "cursor #{client.iterate_by_cursor(limit: 2).map(&:id).join(" ")}"
puts "page #{client.iterate_by_page(limit: 2).map(&:id).join(" ")}"
puts "offset #{client.iterate_by_offset(limit: 2, max_pages: 2).map(&:id).join(" ")}"
begin
  client.iterate_by_page(limit: 2, options: Shelf::CallOptions.new(max_price: "0.0001")).first
rescue Shelf::NodeError => e
  puts "pages-budget #{e.code} #{e.charged.inspect}"
end
