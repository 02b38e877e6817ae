"""A router that speaks UPnP: it tells where it is, and forwards what it is asked to (IGD 1, WANIPConnection 1).

    igd.py LAN_ADDRESS WAN_ADDRESS   until it is ended

Forwards become rules in the table that the laboratory gives every router.
"""

import http.server
import re
import socket
import struct
import subprocess
import sys
import threading

GROUP, SEARCH_PORT, HTTP_PORT = "239.255.255.250", 1900, 5000
SERVICE = "urn:schemas-upnp-org:service:WANIPConnection:1"
# What AddPortMapping takes, in the standard's order.
MAPPING = ("RemoteHost", "ExternalPort", "Protocol", "InternalPort", "InternalClient", "Enabled",
           "PortMappingDescription", "LeaseDuration")
lan, wan = sys.argv[1], sys.argv[2]


def answer_searches():
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    end.bind(("", SEARCH_PORT))
    group = struct.pack("4s4s", socket.inet_aton(GROUP), socket.inet_aton(lan))
    end.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
    print("searchable", flush=True)
    while True:
        search, asker = end.recvfrom(2048)
        if search.startswith(b"M-SEARCH") and b"InternetGatewayDevice" in search:
            where = f"http://{lan}:{HTTP_PORT}/device.xml"
            found = ("HTTP/1.1 200 OK", "ST: urn:schemas-upnp-org:device:InternetGatewayDevice:1",
                     f"LOCATION: {where}", "", "")
            end.sendto("\r\n".join(found).encode(), asker)


def forward(mapping):
    """Only to whoever asks, as good routers do; the caller has looked at that."""
    transport, port = mapping["Protocol"].lower(), int(mapping["ExternalPort"])
    host, inner = mapping["InternalClient"], int(mapping["InternalPort"])
    rule = f"add rule ip nat pre fib daddr type local {transport} dport {port} dnat to {host}:{inner}"
    subprocess.run(["nft", rule], check=True)


class Router(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def say(self, status, text):
        body = ('<?xml version="1.0"?>' + text).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/device.xml":
            self.say(200, "<root><device><serviceList><service>"
                          f"<serviceType>{SERVICE}</serviceType><SCPDURL>/service.xml</SCPDURL>"
                          "<controlURL>/control</controlURL></service></serviceList></device></root>")
        else:
            takes = "".join(f"<argument><name>New{name}</name><direction>in</direction></argument>" for name in MAPPING)
            self.say(200, "<scpd><actionList><action><name>AddPortMapping</name>"
                          f"<argumentList>{takes}</argumentList></action></actionList></scpd>")

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        action = self.headers["SOAPAction"].strip('"').rsplit("#", 1)[1]
        outcome = ""
        if action == "GetExternalIPAddress":
            outcome = f"<NewExternalIPAddress>{wan}</NewExternalIPAddress>"
        elif action == "AddPortMapping":
            mapping = dict(re.findall(r"<New(\w+)>([^<]*)</New", text))
            if mapping["InternalClient"] != self.client_address[0]:
                return self.say(500, "<Refused/>")
            forward(mapping)
        said = f'<u:{action}Response xmlns:u="{SERVICE}">{outcome}</u:{action}Response>'
        self.say(200, '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
                      f"{said}</s:Body></s:Envelope>")


server = http.server.ThreadingHTTPServer((lan, HTTP_PORT), Router)
threading.Thread(target=answer_searches, daemon=True).start()
server.serve_forever()
