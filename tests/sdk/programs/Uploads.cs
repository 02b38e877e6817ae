using System;
using System.IO;
using System.Threading.Tasks;
using Sizes;

/// <summary>An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk.</summary>
public static class Uploads
{
    private const string Name = "a \"dot\".png";

    private static async Task Run()
    {
        var client = new Client();
        var content = File.ReadAllBytes(Name);
        var form = new ImageSizeForm { Image = new Upload(content, Name, "image/png"), Note = "Z\u00fcrich --farthing-sizecsharp" };
        var answer = await client.ImageSize(form);
        var size = answer.Value;
        Console.WriteLine(
            "form " + size.Width + " " + size.Height + " " + size.Type + " " + size.File + " "
            + (size.Note == form.Note ? "true" : "false") + " " + size.Bytes + " " + answer.Charged);
        answer = await client.RawImageSize(content);
        size = answer.Value;
        Console.WriteLine(
            "raw " + size.Width + " " + size.Height + " " + size.Type + " " + size.Bytes + " " + answer.Charged);
        for (var time = 0; time < 2; time++)
        {
            answer = await client.ImageSize(form, options: new CallOptions { CallId = "size-csharp" });
            Console.WriteLine("again " + answer.Value.Width);
        }
    }

    /// <summary>Buys what it uploads for.</summary>
    public static void Main()
    {
        Run().GetAwaiter().GetResult();
    }
}
