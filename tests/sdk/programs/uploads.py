"""An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk."""

import pathlib

import sizes

NAME = 'a "dot".png'

client = sizes.Client()
content = pathlib.Path(NAME).read_bytes()
form = sizes.ImageSizeForm(image=sizes.Upload(content, NAME, "image/png"), note="Z\u00fcrich --farthing-sizepython")
answer = client.image_size(form)
size = answer.value
is_same = str(size.note == form.note).lower()
print("form", size.width, size.height, size.type, size.file, is_same, size.bytes_, answer.charged)
answer = client.raw_image_size(content)
size = answer.value
print("raw", size.width, size.height, size.type, size.bytes_, answer.charged)
for _ in range(2):
    print("again", client.image_size(form, options=sizes.CallOptions(call_id="size-python")).value.width)
