using System;
using {{ package.pascal }};

/// <summary>What can be told without a node.</summary>
public static class ClientTest
{
    /// <summary>Ends with an error when something does not hold.</summary>
    public static int Main()
    {
        try
        {
            new Client(new FarthingConfig { BaseUrl = "http://node.example", Secret = "none" }).Dispose();
            return 1;
        }
        catch (ArgumentException)
        {
            // The secret must not travel in the open.
        }
        using (var client = new Client(new FarthingConfig { BaseUrl = "https://127.0.0.1:1", Secret = "none", MaxRetries = 0 }))
        {
            try
            {
                client.Call("GET", "/").GetAwaiter().GetResult();
                return 1;
            }
            catch (ConnectionException error)
            {
                return error.Charged == false ? 0 : 1;
            }
        }
    }
}
