#!/usr/bin/env python3
"""Two hosts and one home: the line that the first prints joins the second, over TLS."""

import re
import shlex
import ssl
import unittest

import testbed
from testbed import LRUN

SHOW = 'echo "rank=$RANK world=$WORLD_SIZE host=$(hostname) generation=$LRUN_GENERATION"'
# Asks the service's port from another host: prints the subject of its certificate, presents none.
ASK = '''
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["h2"])
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as plain:
    with context.wrap_socket(plain) as wrapped:
        print(wrapped.version(), ssl.DER_cert_to_PEM_cert(wrapped.getpeercert(True)))
'''


class TwoHosts(testbed.Cluster):
    needs = ('ip', 'nft', 'python3')

    def setUp(self):
        super().setUp()
        self.start_hosts(2)
        for name in ('home', 'other-home', 'node1', 'node2'):
            (self.state / name).mkdir(mode=0o700)

    def lrun_on(self, host, *words, home='home'):
        """lrun on a host: the home is shared, the folder of sockets is the host's own."""
        return self.on_host(
            host,
            LRUN,
            *words,
            HOME=str(self.state / home),
            XDG_CONFIG_HOME='',
            XDG_RUNTIME_DIR=str(self.state / host),
        )

    def serve(self):
        """(process, words of the printed line)."""
        first = self.lrun_on('node1', '--nnodes', '2', '--nproc', '2', 'sh', '-c', SHOW)
        printed = first.wait_for_text(r'^ +(lrun .*--rdzv-endpoint.*)\n', 'the line to join')
        return first, shlex.split(printed.group(1))

    def port_of(self, words):
        endpoint = next(word for word in words if word.startswith('--rdzv-endpoint='))
        return endpoint.rsplit(':', 1)[1]

    def test_printed_line_joins_over_tls(self):
        first, words = self.serve()
        asked = self.on_host('node2', 'python3', '-c', ASK, 'node1', self.port_of(words))
        asked.wait()
        self.assertIn('TLSv1.', asked.text())
        second = self.lrun_on('node2', *words[1:])
        codes = (first.wait(), second.wait())
        text = first.text() + second.text()
        rows = re.findall(r'rank=(\d) world=(\d) host=(\w+) generation=(\S+)', text)
        self.assertEqual(codes, (0, 0), text)
        self.assertEqual(sorted(row[0] for row in rows), ['0', '1', '2', '3'], text)
        self.assertEqual({row[2] for row in rows}, {'node1', 'node2'}, text)
        self.assertEqual({(row[1], row[3]) for row in rows}, {('4', rows[0][3])}, text)

    def test_other_keys_are_refused_with_the_ways_out(self):
        first, words = self.serve()
        second = self.lrun_on('node2', *words[1:], home='other-home')
        self.assertEqual(second.wait(), 3, second.text())
        for way in ('--tls', '--insecure-network'):
            self.assertIn(way, second.text())
        self.assertIsNone(first.process.poll(), 'the job that was asked goes on waiting')


if __name__ == '__main__':
    unittest.main()
