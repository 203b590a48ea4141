#include <array>

#include "launcher/run_options.h"

namespace lrun::launcher {
namespace {

constexpr OptionKind kSwitch = OptionKind::Switch;
constexpr OptionKind kValue = OptionKind::Value;

// In the order of the help. Texts are read by `--help`, docs/lrun.md and completion.
constexpr auto kTable = std::to_array<OptionSpec>({
    {"nnodes", kValue, 0, "MIN:MAX", "1:1", "Number of nodes, or the range of an elastic job.", "",
     true},
    {"nproc-per-node", kValue, 0, "N", "1",
     "Workers on this node: a number, or cpu for one a usable CPU.", "nproc", true},
    {"standalone", kSwitch, 0, "", "",
     "A job of this machine alone, unseen by others; with --nnodes N it runs N agents here.", "",
     true},
    {"rdzv-endpoint", kValue, 0, "HOST:PORT", "",
     "Where the rendezvous is served. The node that the host names serves it. Several, separated "
     "by "
     "commas, are tried in order.",
     "", true},
    {"rdzv-id", kValue, 0, "NAME", "", "Name of the job; nodes with one name meet.", "", true},
    {"rdzv-port", kValue, 0, "PORT", "0",
     "Port for other nodes when this node serves without --rdzv-endpoint; 0 takes a free one.", "",
     false},
    {"max-restarts", kValue, 0, "N", "0", "Restarts after worker failures, for the whole job.", "",
     true},
    {"node-rank", kValue, 0, "N", "", "Fixed place of this node; two nodes never share one.", "",
     true},
    {"local-addr", kValue, 0, "ADDRESS", "",
     "Address at which other nodes reach this node's workers.", "", true},
    {"node-name", kValue, 0, "NAME", "", "Name of this node instead of its host name.", "", false},
    {"node-label", kValue, 0, "KEY=VALUE", "", "Topology labels of this node, separated by commas.",
     "", false},
    {"role", kValue, 0, "NAME", "default", "Role name of this node's workers.", "", true},
    {"no-python", kSwitch, 0, "", "", "Execute PROGRAM directly, whatever its name.", "", true},
    {"module", kSwitch, 'm', "", "", "PROGRAM is the name of a Python module.", "", true},
    {"log-dir", kValue, 0, "DIR", "",
     "Folder for the workers' output; none: a new temporary folder.", "", true},
    {"redirects", kValue, 'r', "STREAMS", "0",
     "Streams that go to files: 0 none, 1 stdout, 2 stderr, 3 both, or LOCAL_RANK:VALUE,... .", "",
     true},
    {"tee", kValue, 't', "STREAMS", "0", "Streams that go to files and to the console.", "", true},
    {"metrics-port", kValue, 0, "PORT", "",
     "Serve /metrics, /healthz and /readyz here; 0 takes a free port and prints it.", "", false},
    {"metrics-address", kValue, 0, "ADDRESS", "127.0.0.1", "Address of the metrics port.", "",
     false},
    {"tls", kValue, 0, "DIR", "",
     "Folder with ca.crt, tls.crt and tls.key; none: the user's own, made on first use.", "",
     false},
    {"insecure-network", kSwitch, 0, "", "", "Speak without TLS beyond this machine.", "", false},
    {"shutdown-timeout", kValue, 0, "SECONDS", "30", "From the polite signal to SIGKILL.", "",
     true},
    {"stall-timeout", kValue, 0, "SECONDS", "",
     "A worker that reported progress and then none for this long is ended; none: never.", "",
     false},
    {"lease", kValue, 0, "SECONDS", "5", "Silence after which a node counts as lost.", "", false},
    {"heartbeat", kValue, 0, "SECONDS", "1", "Interval of heartbeats; grows with the group.", "",
     false},
    {"last-call", kValue, 0, "SECONDS", "30", "Wait for stragglers once MIN nodes are there.", "",
     false},
    {"join-timeout", kValue, 0, "SECONDS", "600", "Wait for a group before giving up.", "", false},
    {"log-level", kValue, 0, "LEVEL", "", "error, warn, info or debug; none: LOGLEVEL, else warn.",
     "", false},
    {"log-format", kValue, 0, "FORMAT", "logfmt", "logfmt or json.", "", false},
    {"help", kSwitch, 'h', "", "", "Print this and exit.", "", false},
    {"version", kSwitch, 0, "", "", "Print the version and exit.", "", false},
});

}  // namespace

std::span<const OptionSpec> run_option_table() { return kTable; }

}  // namespace lrun::launcher
