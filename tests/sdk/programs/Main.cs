using System;
using System.Threading.Tasks;
using Quakes;

/// <summary>What every language does: see tests/tests/sdk.</summary>
public static class Program
{
    private static async Task Refused(string what, Func<Task> call)
    {
        try
        {
            await call();
        }
        catch (FarthingException error)
        {
            var node = error as NodeException;
            var charged = error.Charged.Value ? "true" : "false";
            var namesLimit = error.Message.Contains("limit") ? "true" : "false";
            Console.WriteLine(what + " " + (node == null ? "" : node.Code) + " " + charged + " " + namesLimit);
            return;
        }
        throw new InvalidOperationException(what + ": no error");
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

        await Refused("refused", () => client.RecentEarthquakes(limit: 0));
        await Refused("budget", () => new Client(new FarthingConfig { MaxPrice = "0.001" }).RecentEarthquakes());
        var wrong = new FarthingConfig { CaFile = Environment.GetEnvironmentVariable("WRONG_CA_FILE") };
        await Refused("untrusted", () => new Client(wrong).RecentEarthquakes());

        var found = await new Planets.Client().Planets(discoveryMethod: "Transit", limit: 2);
        var planet = found.Value[0];
        Console.WriteLine("planets " + found.Value.Count + " " + planet.Name + " " + planet.DiscoveryYear + " " + found.Charged);
    }

    /// <summary>Buys, and is refused.</summary>
    public static void Main()
    {
        Run().GetAwaiter().GetResult();
    }
}
