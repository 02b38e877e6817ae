// All pages, two of them, and one that is too dear: see tests/tests/sdk.
import * as shelf from "./shelf/src/index.js";

async function ids(books: AsyncIterable<shelf.Book>): Promise<string> {
  const found: string[] = [];
  for await (const book of books) found.push(String(book.id));
  return found.join(" ");
}

const client = new shelf.Client();
console.log("cursor", await ids(client.iterateByCursor({ limit: 2 })));
console.log("page", await ids(client.iterateByPage({ limit: 2 })));
console.log("offset", await ids(client.iterateByOffset({ limit: 2 }, { maxPages: 2 })));
try {
  await ids(client.iterateByPage({ limit: 2 }, { maxPrice: "0.0001" }));
} catch (error) {
  if (!(error instanceof shelf.NodeError)) throw error;
  console.log("pages-budget", error.code, error.charged);
}
