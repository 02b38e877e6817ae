import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import sizes.Client;
import sizes.Farthing.CallOptions;
import sizes.Farthing.Upload;
import sizes.Models.ImageSizeForm;

/** An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk. */
public final class Uploads {
    private static final String NAME = "a \"dot\".png";

    private Uploads() {}

    /** Buys what it uploads for. */
    public static void main(String[] arguments) throws IOException {
        var client = new Client();
        byte[] content = Files.readAllBytes(Path.of(NAME));
        var form = new ImageSizeForm();
        form.image = new Upload(content, NAME, "image/png");
        form.note = "Z\u00fcrich --farthing-sizejava";
        var answer = client.imageSize(form);
        var size = answer.value();
        System.out.println("form " + size.width + " " + size.height + " " + size.type + " " + size.file + " "
                + form.note.equals(size.note) + " " + size.bytes + " " + answer.charged());
        var raw = client.rawImageSize(content);
        size = raw.value();
        System.out.println("raw " + size.width + " " + size.height + " " + size.type + " " + size.bytes + " " + raw.charged());
        for (int time = 0; time < 2; time++) {
            System.out.println("again " + client.imageSize(form, new CallOptions().callId("size-java")).value().width);
        }
    }
}
