// A DHT of js-libp2p, as the public IPFS DHT has nodes of it among others.
//
//   node dht.mjs IP COUNT [ENTRANCE ...]
//
// Starts that many nodes, which listen on ports of the system's choice at that IP and know each other and the entrances. Prints
// their addresses as one line, a JSON list, and runs until standard input ends.

import { noise } from "@chainsafe/libp2p-noise";
import { yamux } from "@chainsafe/libp2p-yamux";
import { identify } from "@libp2p/identify";
import { kadDHT, passthroughMapper } from "@libp2p/kad-dht";
import { ping } from "@libp2p/ping";
import { tcp } from "@libp2p/tcp";
import { multiaddr } from "@multiformats/multiaddr";
import { createLibp2p } from "libp2p";

// js-libp2p is written for Node 22; of what that has and Node 20 lacks, it uses this alone.
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

/** A server of the DHT. On loopback all come from one address, and addresses there are as good as others. */
const start = (ip) =>
  createLibp2p({
    addresses: { listen: [`/ip4/${ip}/tcp/0`] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionManager: { inboundConnectionThreshold: 1000, maxIncomingPendingConnections: 1000 },
    services: {
      // A public address is believed once it is confirmed, and nobody else is here to do it.
      listening: ({ addressManager, transportManager }) => ({
        confirm() {
          const addresses = transportManager.getAddrs();
          addresses.forEach((address) => addressManager.confirmObservedAddr(address, { type: "transport" }));
          return addresses;
        },
      }),
      identify: identify(),
      ping: ping(),
      dht: kadDHT({
        protocol: "/ipfs/kad/1.0.0",
        clientMode: false,
        peerInfoMapper: passthroughMapper,
        allowQueryWithZeroPeers: true,
      }),
    },
  });

const [ip, count, ...entrances] = process.argv.slice(2);
const addresses = [];
for (let number = 0; number < Number(count); number += 1) {
  const node = await start(ip);
  const [address] = node.services.listening.confirm();
  for (const known of [...entrances, ...addresses]) await node.dial(multiaddr(known));
  addresses.push(`${address}/p2p/${node.peerId}`);
}
console.log(JSON.stringify(addresses));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
