<?php

// What every language does: see tests/tests/sdk.

declare(strict_types=1);

require 'quakes/autoload.php';
require 'planets/autoload.php';

function refused(string $what, string $named, callable $call): void
{
    try {
        $call();
    } catch (Quakes\FarthingError | Planets\FarthingError $error) {
        $isNode = $error instanceof Quakes\NodeError || $error instanceof Planets\NodeError;
        $code = $isNode ? $error->errorCode : '';
        $words = [$what, $code, json_encode($error->charged), json_encode(str_contains($error->getMessage(), $named))];
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

refused('refused', 'limit', fn () => $client->recentEarthquakes(limit: 0));
refused('budget', '', fn () => (new Quakes\Client(maxPrice: '0.001'))->recentEarthquakes());
refused('untrusted', '', fn () => (new Quakes\Client(caFile: getenv('WRONG_CA_FILE')))->recentEarthquakes());

$stars = new Planets\Client();
$found = $stars->planets(discoveryMethod: 'Transit', limit: 2);
echo 'planets ', count($found->value), " {$found->value[0]->name} {$found->value[0]->discoveryYear} {$found->charged}\n";

$others = (new Planets\Client(baseUrl: getenv('DROPPING_PLANETS_URL')))->planets(limit: 40);
echo 'planets-again ', count($others->value), " {$others->charged}\n";

refused('planets-refused', 'fields', fn () => $stars->planets(fields: 'nothing'));
refused('planets-budget', '', fn () => (new Planets\Client(maxPrice: '0.001'))->planets());
refused('planets-untrusted', '', fn () => (new Planets\Client(caFile: getenv('WRONG_CA_FILE')))->planets());

$chosen = $stars->call('GET', '/planets', ['limit' => 1, 'fields' => ['name', 'discoveryYear']]);
echo 'chosen ', count($chosen->value), ' ', count((array) $chosen->value[0]), " {$chosen->charged}\n";
