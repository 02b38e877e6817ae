using System;
using System.Threading.Tasks;
using Things;

/// <summary>What is written and read exactly, and what errors tell: see tests/tests/sdk.</summary>
public static class Exact
{
    /// <summary>Sends a thing and gets it back; asks for two that do not come.</summary>
    public static async Task Run()
    {
        var client = new Client();
        var sent = new Thing
        {
            Label = "csharp",
            Count = 9007199254740993,
            Huge = ulong.MaxValue,
            Nullable = null,
            Both = new OrNull<long?>(null),
            Pet = new Pet.OfDog(new Dog { Kind = "dog", Name = "Rex" }),
            Loose = new ThingLoose.OfInteger(7)
        };
        var answer = await client.KeepThing(sent);
        var kept = answer.Value;
        if (kept.Nullable != null || kept.Optional != null || kept.Both == null || kept.Both.Value != null)
        {
            throw new InvalidOperationException("it is not what was sent");
        }
        Console.WriteLine(
            "exact " + kept.Count + " " + kept.Huge + " " + ((Pet.OfDog)kept.Pet).Value.Name + " "
            + ((ThingLoose.OfInteger)kept.Loose).Value + " " + answer.Charged);

        try
        {
            await client.GetThing("missing");
        }
        catch (ServiceException error)
        {
            Console.WriteLine("missing " + error.Answer.Status + " " + (error.Charged == true ? "true" : "not"));
        }
        var lossy = new FarthingConfig { BaseUrl = Environment.GetEnvironmentVariable("DROPPING_THINGS_URL"), MaxRetries = 0 };
        try
        {
            await new Client(lossy).GetThing("long");
        }
        catch (ConnectionException error)
        {
            Console.WriteLine("unknown " + (error.Charged == null ? "null" : "known"));
        }

        foreach (var path in new[] { "", "/headers" })
        {
            var slow = new FarthingConfig { BaseUrl = Environment.GetEnvironmentVariable("DRIPPING_URL") + path, MaxRetries = 0 };
            slow.Timeout = TimeSpan.FromSeconds(2);
            try
            {
                await new Client(slow).GetThing("slow");
            }
            catch (FarthingException error)
            {
                Console.WriteLine("dripping" + path.Replace('/', '-') + " " + (error.Charged == null ? "null" : "known"));
            }
        }
        foreach (var node in Environment.GetEnvironmentVariable("LEAVING_URLS").Split(' '))
        {
            var nameAndUrl = node.Split('=');
            try
            {
                await new Client(new FarthingConfig { BaseUrl = nameAndUrl[1], MaxRetries = 1 }).GetThing("gone");
            }
            catch (FarthingException error)
            {
                Console.WriteLine(nameAndUrl[0] + " " + (error.Charged == null ? "null" : error.Charged == true ? "true" : "false"));
            }
        }
        Refused("Timeout", new FarthingConfig { Timeout = TimeSpan.Zero });
        Refused("MaxRetries", new FarthingConfig { MaxRetries = -1 });
        Refused("MaxPrice", new FarthingConfig { MaxPrice = "1e-05" });
        Refused("BaseUrl", new FarthingConfig { BaseUrl = "https://localhost:notaport" });
        Refused("BaseUrl", new FarthingConfig { BaseUrl = "http://127.0.0.1.example.com" });
        Refused("BaseUrl", new FarthingConfig { BaseUrl = "https://localhost:3000/?x" });
        Refused("BaseUrl", new FarthingConfig { BaseUrl = "https://u:p@localhost:3000" });
        Refused("Secret", new FarthingConfig { Secret = "a\nb" });
        Refused("CaFile", new FarthingConfig { CaFile = "/nothing/here" });
        Console.WriteLine("settings refused");
    }

    private static void Refused(string named, FarthingConfig config)
    {
        try
        {
            new Client(config).Dispose();
        }
        catch (ArgumentException error) when (error.Message.StartsWith(named))
        {
            return;
        }
        throw new InvalidOperationException(named + ": no error");
    }

    /// <summary>Runs it.</summary>
    public static void Main()
    {
        Run().GetAwaiter().GetResult();
    }
}
