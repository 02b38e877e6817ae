import java.math.BigInteger;
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
    }
}
