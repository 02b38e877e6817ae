/** A whole number without loss: a `number` where that is exact, otherwise a `bigint`. */
export type Integer = number | bigint;

/** Where the node is and how it is called. */
export interface ClientOptions {
  /** `FARTHING_URL` of the environment when left out, and without that the usual address of the own node. */
  baseUrl?: string | undefined;
  /** `CONSUMER_SECRET` of the environment when left out. */
  secret?: string | undefined;
  /** The authority that signed the node's certificate; `FARTHING_CA_FILE` when left out. It is always verified. */
  caFile?: string | undefined;
  /** Of each attempt; 60 seconds when left out. */
  timeoutMs?: number | undefined;
  /** 2 when left out. */
  maxRetries?: number | undefined;
  /** The most that a call may cost, in USDC: "0.01". */
  maxPrice?: string | undefined;
}

/** What one call does differently from its client. */
export interface CallOptions {
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  maxPrice?: string | undefined;
  /** Repeats with the same id are charged once, even by another process. */
  callId?: string | undefined;
  signal?: AbortSignal | undefined;
}
{% if has_paging %}

/** What a walk through the pages of an operation does differently. */
export interface PageOptions extends CallOptions {
  /** Ends it after that many calls. */
  maxPages?: number | undefined;
}
{% endif %}

/** An answer of the service, and what it cost. */
export interface Answer<T> {
  value: T;
  /** Of the call, in USDC. */
  price: string;
  /** What was paid, in USDC; `undecided` while an x402 server does not say whether it took the payment. */
  charged: string;
  /** The owner's signed word on it, by its hash. */
  receipt: string | undefined;
  callId: string;
  status: number;
  /** Names in small letters. */
  headers: Record<string, string>;
  /** As it came. */
  body: Uint8Array;
}
