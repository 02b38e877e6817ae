using System;
using System.Threading.Tasks;
using Quakes;

/// <summary>What every language does: see tests/tests/sdk.</summary>
public static class Program
{
    private static async Task Refused(string what, string named, Func<Task> call)
    {
        try
        {
            await call();
        }
        catch (FarthingException error)
        {
            var node = error as NodeException;
            Tell(what, node == null ? "" : node.Code, error.Charged.Value, error.Message.Contains(named));
            return;
        }
        catch (Planets.FarthingException error)
        {
            var node = error as Planets.NodeException;
            Tell(what, node == null ? "" : node.Code, error.Charged.Value, error.Message.Contains(named));
            return;
        }
        throw new InvalidOperationException(what + ": no error");
    }

    private static void Tell(string what, string code, bool charged, bool isNamed)
    {
        Console.WriteLine(what + " " + code + " " + (charged ? "true" : "false") + " " + (isNamed ? "true" : "false"));
    }

    private static async Task Run()
    {
        // docs: begin
        var client = new Client(); // CONSUMER_SECRET and FARTHING_CA_FILE are set
        var answer = await client.RecentEarthquakes(limit: 3);
        foreach (var quake in answer.Value.Features)
        {
            Console.WriteLine(quake.Properties.Place + " " + quake.Properties.Mag);
        }
        Console.WriteLine("paid " + answer.Charged + " USDC, receipt " + answer.Receipt);
        // docs: end
        var first = answer.Value.Features[0];
        var magnitude = Math.Round(first.Properties.Mag.Value * 10);
        Console.WriteLine(
            "recent " + answer.Value.Features.Count + " " + first.Id + " " + first.Properties.Time + " " + magnitude + " " + answer.Charged);

        var dropping = new Client(new FarthingConfig { BaseUrl = Environment.GetEnvironmentVariable("DROPPING_URL") });
        var many = await dropping.RecentEarthquakes(limit: 40);
        Console.WriteLine("again " + many.Value.Features.Count + " " + many.Charged);

        await Refused("refused", "limit", () => client.RecentEarthquakes(limit: 0));
        await Refused("budget", "", () => new Client(new FarthingConfig { MaxPrice = "0.001" }).RecentEarthquakes());
        var wrong = new FarthingConfig { CaFile = Environment.GetEnvironmentVariable("WRONG_CA_FILE") };
        await Refused("untrusted", "", () => new Client(wrong).RecentEarthquakes());

        var stars = new Planets.Client();
        var found = await stars.Planets(discoveryMethod: "Transit", limit: 2);
        var planet = found.Value[0];
        Console.WriteLine("planets " + found.Value.Count + " " + planet.Name + " " + planet.DiscoveryYear + " " + found.Charged);

        var lossy = new Planets.FarthingConfig { BaseUrl = Environment.GetEnvironmentVariable("DROPPING_PLANETS_URL") };
        var others = await new Planets.Client(lossy).Planets(limit: 40);
        Console.WriteLine("planets-again " + others.Value.Count + " " + others.Charged);

        await Refused("planets-refused", "fields", () => stars.Planets(fields: "nothing"));
        await Refused("planets-budget", "", () => new Planets.Client(new Planets.FarthingConfig { MaxPrice = "0.001" }).Planets());
        var stranger = new Planets.FarthingConfig { CaFile = Environment.GetEnvironmentVariable("WRONG_CA_FILE") };
        await Refused("planets-untrusted", "", () => new Planets.Client(stranger).Planets());
    }

    /// <summary>Buys, and is refused.</summary>
    public static void Main()
    {
        Run().GetAwaiter().GetResult();
    }
}
