using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Shelf;

/// <summary>All pages, two of them, and one that is too dear: see tests/tests/sdk.</summary>
public static class Pages
{
    // What `await foreach` does, in words of the older language that Mono's compiler speaks.
    private static async Task Show(string what, IAsyncEnumerable<Book> books)
    {
        var walk = books.GetAsyncEnumerator();
        while (await walk.MoveNextAsync())
        {
            what += " " + walk.Current.Id;
        }
        await walk.DisposeAsync();
        Console.WriteLine(what);
    }

    private static async Task Run()
    {
        var client = new Client();
        await Show("cursor", client.IterateByCursor(2));
        await Show("page", client.IterateByPage(2));
        await Show("offset", client.IterateByOffset(2, maxPages: 2));
        try
        {
            await Show("dear", client.IterateByPage(2, options: new CallOptions { MaxPrice = "0.0001" }));
        }
        catch (NodeException error)
        {
            Console.WriteLine("pages-budget " + error.Code + " " + (error.Charged.Value ? "true" : "false"));
        }
    }

    /// <summary>Buys, and is refused.</summary>
    public static void Main()
    {
        Run().GetAwaiter().GetResult();
    }
}
