<?php

// All pages, two of them, and one that is too dear: see tests/tests/sdk.

declare(strict_types=1);

require 'shelf/autoload.php';

function show(string $what, Generator $books): void
{
    foreach ($books as $book) {
        $what .= " {$book->id}";
    }
    echo $what, "\n";
}

$client = new Shelf\Client();
show('cursor', $client->iterateByCursor(limit: 2));
show('page', $client->iterateByPage(limit: 2));
show('offset', $client->iterateByOffset(limit: 2, maxPages: 2));
try {
    show('dear', $client->iterateByPage(limit: 2, options: new Shelf\CallOptions(maxPrice: '0.0001')));
} catch (Shelf\NodeError $error) {
    echo "pages-budget {$error->errorCode} ", json_encode($error->charged), "\n";
}
