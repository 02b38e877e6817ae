<?php

// One call, and what it cost. Set CONSUMER_SECRET and FARTHING_CA_FILE, then: php examples/first_call.php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';

$client = new {{ package.pascal }}\Client();
{% if example %}
$answer = $client->{{ example.name }}({% for a in example.example %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.pascal }}\{{ a.choice_type }}::{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %});
{% else %}
$answer = $client->call('GET', '/');
{% endif %}
echo strlen($answer->body), " bytes for {$answer->charged} USDC, receipt {$answer->receipt}\n";
