<?php

// What every language does: see tests/tests/sdk.

declare(strict_types=1);

require 'quakes/autoload.php';
require 'planets/autoload.php';

function refused(string $what, callable $call): void
{
    try {
        $call();
    } catch (Quakes\FarthingError $error) {
        $code = $error instanceof Quakes\NodeError ? $error->errorCode : '';
        $words = [$what, $code, json_encode($error->charged), json_encode(str_contains($error->getMessage(), 'limit'))];
        echo implode(' ', $words), "\n";
        return;
    }
    exit("{$what}: no error\n");
}

// docs: begin
$client = new Quakes\Client(); // CONSUMER_SECRET and FARTHING_CA_FILE are set
$answer = $client->recentEarthquakes(limit: 3);
foreach ($answer->value->features as $event) {
    echo "{$event->properties->place} {$event->properties->mag}\n";
}
echo "paid {$answer->charged} USDC, receipt {$answer->receipt}\n";
// docs: end
$first = $answer->value->features[0];
$magnitude = round($first->properties->mag * 10);
$count = count($answer->value->features);
echo "recent {$count} {$first->id} {$first->properties->time} {$magnitude} {$answer->charged}\n";

$many = (new Quakes\Client(baseUrl: getenv('DROPPING_URL')))->recentEarthquakes(limit: 40);
echo 'again ', count($many->value->features), " {$many->charged}\n";

refused('refused', fn () => $client->recentEarthquakes(limit: 0));
refused('budget', fn () => (new Quakes\Client(maxPrice: '0.001'))->recentEarthquakes());
refused('untrusted', fn () => (new Quakes\Client(caFile: getenv('WRONG_CA_FILE')))->recentEarthquakes());

$found = (new Planets\Client())->planets(discoveryMethod: 'Transit', limit: 2);
echo 'planets ', count($found->value), " {$found->value[0]->name} {$found->value[0]->discoveryYear} {$found->charged}\n";
