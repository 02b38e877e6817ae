import java.math.BigInteger;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import things.Client;
import things.Farthing;
import things.Models;

/** What is written and read exactly, and what errors tell: see tests/tests/sdk. */
public final class Exact {
    private Exact() {}

    /** Sends a thing and gets it back; asks for two that do not come. */
    public static void main(String[] arguments) {
        var client = new Client();
        var dog = new Models.Dog();
        dog.kind = "dog";
        dog.name = "Rex";
        var sent = new Models.Thing();
        sent.label = "java";
        sent.count = 9007199254740993L;
        sent.huge = new BigInteger("18446744073709551615");
        sent.both = Optional.empty();
        sent.pet = new Models.Pet.Dog(dog);
        sent.loose = new Models.ThingLoose.Integer_(7L);
        var answer = client.keepThing(sent);
        var kept = answer.value();
        if (kept.nullable != null || kept.optional != null || kept.both == null || kept.both.isPresent()) {
            throw new AssertionError(kept.toJson());
        }
        System.out.println("exact " + kept.count + " " + kept.huge + " " + ((Models.Pet.Dog) kept.pet).value().name + " "
                + kept.loose.value() + " " + answer.charged());

        try {
            client.getThing("missing");
        } catch (Farthing.ServiceException e) {
            System.out.println("missing " + e.answer().status() + " " + e.charged().orElseThrow());
        }
        var lossy = new Client(new Farthing.Config().baseUrl(System.getenv("DROPPING_THINGS_URL")).maxRetries(0));
        try {
            lossy.getThing("long");
        } catch (Farthing.ConnectionException e) {
            System.out.println("unknown " + e.charged().map(String::valueOf).orElse("null"));
        }

        for (var path : List.of("", "/headers")) {
            var slow = settings().baseUrl(System.getenv("DRIPPING_URL") + path).timeout(Duration.ofSeconds(2)).maxRetries(0);
            try {
                new Client(slow).getThing("slow");
            } catch (Farthing.FarthingException e) {
                System.out.println(
                        "dripping" + path.replace('/', '-') + " " + e.charged().map(String::valueOf).orElse("null"));
            }
        }
        for (var node : System.getenv("LEAVING_URLS").split(" ")) {
            var nameAndUrl = node.split("=");
            try {
                new Client(settings().baseUrl(nameAndUrl[1]).maxRetries(1)).getThing("gone");
            } catch (Farthing.FarthingException e) {
                System.out.println(nameAndUrl[0] + " " + e.charged().map(String::valueOf).orElse("null"));
            }
        }
        refused("timeout", settings().timeout(Duration.ZERO));
        refused("maxRetries", settings().maxRetries(-1));
        refused("maxPrice", settings().maxPrice("1e-05"));
        refused("baseUrl", settings().baseUrl("https://localhost:notaport"));
        refused("baseUrl", settings().baseUrl("http://127.0.0.1.example.com"));
        refused("baseUrl", settings().baseUrl("https://localhost:3000/?x"));
        refused("baseUrl", settings().baseUrl("https://u:p@localhost:3000"));
        refused("baseUrl", settings().baseUrl("https://a b"));
        refused("secret", settings().secret("a\nb"));
        refused("caFile", settings().caFile("/nothing/here"));
        System.out.println("settings refused");
    }

    private static Farthing.Config settings() {
        return new Farthing.Config();
    }

    private static void refused(String named, Farthing.Config config) {
        try {
            new Client(config);
        } catch (IllegalArgumentException e) {
            if (e.getMessage().startsWith(named)) {
                return;
            }
            throw e;
        }
        throw new AssertionError(named + ": no error");
    }
}
