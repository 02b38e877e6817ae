import shelf.Client;
import shelf.Client.ByCursorParams;
import shelf.Client.ByOffsetParams;
import shelf.Client.ByPageParams;
import shelf.Farthing.CallOptions;
import shelf.Farthing.NodeException;
import shelf.Models.Book;

/** All pages, two of them, and one that is too dear: see tests/tests/sdk. */
public final class Pages {
    private Pages() {}

    private static void show(String what, Iterable<Book> books) {
        var line = new StringBuilder(what);
        for (var book : books) {
            line.append(' ').append(book.id);
        }
        System.out.println(line);
    }

    /** Buys, and is refused. */
    public static void main(String[] arguments) {
        var client = new Client();
        show("cursor", client.iterateByCursor(2, new ByCursorParams()));
        show("page", client.iterateByPage(2, new ByPageParams()));
        show("offset", client.iterateByOffset(2, new ByOffsetParams(), new CallOptions().maxPages(2)));
        var refused = client.iterateByPage(2, new ByPageParams(), new CallOptions().maxPrice("0.0001")).iterator();
        try {
            refused.next();
        } catch (NodeException e) {
            System.out.println("pages-budget " + e.code() + " " + e.charged().orElseThrow());
        }
        if (refused.hasNext()) {
            throw new AssertionError("an error is the end");
        }
    }
}
