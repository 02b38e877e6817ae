# frozen_string_literal: true

# An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk.

require "sizes"

NAME = "a \"dot\".png"

client = Sizes::Client.new
content = File.binread(NAME)
form = Sizes::ImageSizeForm.new(
  image: Sizes::Upload.new(content, name: NAME, media_type: "image/png"), note: "Z\u00fcrich --farthing-sizeruby"
)
answer = client.image_size(body: form)
size = answer.value
puts "form #{size.width} #{size.height} #{size.type} #{size.file} #{size.note == form.note} #{size.bytes} #{answer.charged}"
answer = client.raw_image_size(body: content)
size = answer.value
puts "raw #{size.width} #{size.height} #{size.type} #{size.bytes} #{answer.charged}"
2.times do
  answer = client.image_size(body: form, options: Sizes::CallOptions.new(call_id: "size-ruby"))
  puts "again #{answer.value.width}"
end
