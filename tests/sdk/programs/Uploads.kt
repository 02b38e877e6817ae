import java.io.File
import sizes.CallOptions
import sizes.Client
import sizes.ImageSizeForm
import sizes.Upload

/** An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk. */
public fun main() {
    val name = "a \"dot\".png"
    val client = Client()
    val content = File(name).readBytes()
    val form = ImageSizeForm(image = Upload(content, name, "image/png"), note = "Z\u00fcrich --farthing-sizekotlin")
    val answer = client.imageSize(form)
    val size = answer.value
    val isSame = size.note == form.note
    println("form ${size.width} ${size.height} ${size.type} ${size.file} $isSame ${size.bytes} ${answer.charged}")
    val raw = client.rawImageSize(content)
    println("raw ${raw.value.width} ${raw.value.height} ${raw.value.type} ${raw.value.bytes} ${raw.charged}")
    repeat(2) {
        println("again ${client.imageSize(form, options = CallOptions(callId = "size-kotlin")).value.width}")
    }
}
