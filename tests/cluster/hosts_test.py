#!/usr/bin/env python3
"""Two hosts and one home: the line that the first prints joins the second, over TLS."""

import re
import select
import shlex
import ssl
import unittest

import testbed
from testbed import LIMIT_SECONDS, LRUN

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

    def start(self, host, *words, home='home'):
        """lrun on a host: the home is shared, the folder of sockets is the host's own."""
        return self.on_host(
            host,
            *words,
            HOME=str(self.state / home),
            XDG_CONFIG_HOME='',
            XDG_RUNTIME_DIR=str(self.state / host),
            LOGLEVEL='info',
        )

    def serve(self):
        """(process, words of the printed line, everything printed before it)."""
        first = self.start('node1', LRUN, '--nnodes', '2', '--nproc', '2', 'sh', '-c', SHOW)
        printed = ''
        while not re.search(r'^ +lrun .*--rdzv-endpoint.*\n', printed, re.M):
            ready, _, _ = select.select([first.stderr], [], [], LIMIT_SECONDS)
            line = first.stderr.readline() if ready else ''
            self.assertTrue(line, f'no line to join was printed:\n{printed}')
            printed += line
        return first, shlex.split(printed.splitlines()[-1]), printed

    def port_of(self, words):
        return re.search(
            r':(\d+)$', next(w for w in words if w.startswith('--rdzv-endpoint='))
        ).group(1)

    def test_printed_line_joins_over_tls(self):
        first, words, _ = self.serve()
        asked = self.on_host('node2', 'python3', '-c', ASK, 'node1', self.port_of(words))
        seen, errors = asked.communicate(timeout=LIMIT_SECONDS)
        self.assertIn('TLSv1.', seen, errors)
        authority = (self.state / 'home/.config/lrun/tls/ca.crt').read_text(encoding='utf-8')
        self.assertTrue(ssl.PEM_cert_to_DER_cert(authority))
        second = self.start('node2', LRUN, *words[1:])
        out = [process.communicate(timeout=LIMIT_SECONDS) for process in (first, second)]
        text = '\n'.join(part for pair in out for part in pair)
        rows = re.findall(r'rank=(\d) world=(\d) host=(\w+) generation=(\S+)', text)
        self.assertEqual((first.returncode, second.returncode), (0, 0), text)
        self.assertEqual(sorted(row[0] for row in rows), ['0', '1', '2', '3'], text)
        self.assertEqual({row[2] for row in rows}, {'node1', 'node2'}, text)
        self.assertEqual({(row[1], row[3]) for row in rows}, {('4', rows[0][3])}, text)

    def test_other_keys_are_refused_with_the_ways_out(self):
        first, words, _ = self.serve()
        second = self.start('node2', LRUN, *words[1:], home='other-home')
        _, errors = second.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(second.returncode, 3, errors)
        for way in ('--tls', '--insecure-network'):
            self.assertIn(way, errors)
        self.assertIsNone(first.poll(), 'the job that was asked goes on waiting')


if __name__ == '__main__':
    unittest.main()
