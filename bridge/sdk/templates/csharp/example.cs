using System;
using System.Threading.Tasks;
using {{ package.pascal }};

/// <summary>One call, and what it cost. Set CONSUMER_SECRET and FARTHING_CA_FILE.</summary>
public static class FirstCall
{
    /// <summary>Makes the call.</summary>
    public static void Main()
    {
        Run().GetAwaiter().GetResult();
    }

    private static async Task Run()
    {
        using (var client = new Client())
        {
{% if example %}
            var answer = await client.{{ example.name }}({% for a in example.example %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.pascal }}.{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %});
{% else %}
            var answer = await client.Call("GET", "/");
{% endif %}
            Console.WriteLine(answer.Body.Length + " bytes for " + answer.Charged + " USDC, receipt " + answer.Receipt);
        }
    }
}
