import quakes.Client.RecentEarthquakesParams;
import quakes.Farthing;

/** What every language does: see tests/tests/sdk. */
public final class Main {
    private Main() {}

    private static void refused(String what, String named, Runnable call) {
        try {
            call.run();
            throw new AssertionError(what + ": no error");
        } catch (Farthing.FarthingException e) {
            String code = e instanceof Farthing.NodeException refused ? refused.code() : "";
            tell(what, code, e.charged().orElseThrow(), e.getMessage().contains(named));
        } catch (planets.Farthing.FarthingException e) {
            String code = e instanceof planets.Farthing.NodeException refused ? refused.code() : "";
            tell(what, code, e.charged().orElseThrow(), e.getMessage().contains(named));
        }
    }

    private static void tell(String what, String code, boolean charged, boolean isNamed) {
        System.out.println(what + " " + code + " " + charged + " " + isNamed);
    }

    /** Buys, and is refused. */
    public static void main(String[] arguments) {
        // docs: begin
        var client = new quakes.Client(); // CONSUMER_SECRET and FARTHING_CA_FILE are set
        var answer = client.recentEarthquakes(new RecentEarthquakesParams().limit(3));
        for (var event : answer.value().features) {
            System.out.println(event.properties.place + " " + event.properties.mag);
        }
        System.out.println("paid " + answer.charged() + " USDC, receipt " + answer.receipt());
        // docs: end
        var first = answer.value().features.get(0);
        System.out.println("recent " + answer.value().features.size() + " " + first.id + " " + first.properties.time + " "
                + Math.round(first.properties.mag * 10) + " " + answer.charged());

        var dropping = new quakes.Client(new Farthing.Config().baseUrl(System.getenv("DROPPING_URL")));
        var many = dropping.recentEarthquakes(new RecentEarthquakesParams().limit(40));
        System.out.println("again " + many.value().features.size() + " " + many.charged());

        refused("refused", "limit", () -> client.recentEarthquakes(new RecentEarthquakesParams().limit(0)));
        var frugal = new quakes.Client(new Farthing.Config().maxPrice("0.001"));
        refused("budget", "", () -> frugal.recentEarthquakes(new RecentEarthquakesParams()));
        var wary = new quakes.Client(new Farthing.Config().caFile(System.getenv("WRONG_CA_FILE")));
        refused("untrusted", "", () -> wary.recentEarthquakes(new RecentEarthquakesParams()));

        var stars = new planets.Client();
        var found = stars.planets(new planets.Client.PlanetsParams().discoveryMethod("Transit").limit(2));
        var planet = found.value().get(0);
        System.out.println(
                "planets " + found.value().size() + " " + planet.name + " " + planet.discoveryYear + " " + found.charged());

        var lossy = new planets.Client(new planets.Farthing.Config().baseUrl(System.getenv("DROPPING_PLANETS_URL")));
        var others = lossy.planets(new planets.Client.PlanetsParams().limit(40));
        System.out.println("planets-again " + others.value().size() + " " + others.charged());

        refused("planets-refused", "fields", () -> stars.planets(new planets.Client.PlanetsParams().fields("nothing")));
        var poor = new planets.Client(new planets.Farthing.Config().maxPrice("0.001"));
        refused("planets-budget", "", () -> poor.planets(new planets.Client.PlanetsParams()));
        var careful = new planets.Client(new planets.Farthing.Config().caFile(System.getenv("WRONG_CA_FILE")));
        refused("planets-untrusted", "", () -> careful.planets(new planets.Client.PlanetsParams()));
    }
}
