package {{ package.flat }};

/** What can be told without a node. */
public final class ClientTest {
  private ClientTest() {}

  /** Ends with an error when something does not hold. */
  public static void main(String[] arguments) throws Exception {
    try {
      new Client(new Farthing.Config().baseUrl("http://node.example").secret("none"));
      throw new AssertionError("the secret must not travel in the open");
    } catch (IllegalArgumentException expected) {
      // As it must be.
    }
    var client = new Client(new Farthing.Config().baseUrl("https://127.0.0.1:1").secret("none").maxRetries(0));
    try {
      client.call("GET", "/", java.util.Map.of(), null, new Farthing.CallOptions());
      throw new AssertionError("nobody is there");
    } catch (Farthing.ConnectionException e) {
      if (e.charged().orElse(true)) {
        throw new AssertionError("it must cost nothing");
      }
    }
  }
}
