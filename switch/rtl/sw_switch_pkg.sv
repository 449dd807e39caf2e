// SPDX-License-Identifier: Apache-2.0
//
// What the modules between a switch's ports have in common: frames as words of 64 bits, what the
// tables hold, what is known of a slot, and what is counted.
package sw_switch_pkg;
  import sw_protocol_pkg::*;

  parameter int unsigned WordBits = 64;
  parameter int unsigned WordBytes = WordBits / 8;
  // Of Ethernet, IPv4, UDP and the protocol's header: whole words, and what the tag covers of them
  // but for the operand. UDP's header ends 2 bytes after the first of these begins.
  parameter int unsigned HeadBytes = FrameHeaderBytes + HeaderBytes;
  parameter int unsigned HeadWords = HeadBytes / WordBytes;
  parameter int unsigned TagWordAt = HeadWords - 1;
  parameter int unsigned TaggedWordAt = FrameHeaderBytes / WordBytes;
  // The longest frame that a switch takes.
  parameter int unsigned FrameBytes = HeadBytes + MaxOperandBytes;
  parameter int unsigned FrameWords = FrameBytes / WordBytes;
  parameter int unsigned BytesBits = $clog2(FrameBytes + WordBytes + 1);
  parameter int unsigned WordAtBits = $clog2(FrameWords + 2);

  // Ports that a switch may have: those of children, of a parent, and of the processor.
  parameter int unsigned MaxPorts = MaxChildren + 2;

  typedef logic [WordBits-1:0] word_t;
  typedef logic [BytesBits-1:0] bytes_t;
  typedef logic [WordAtBits-1:0] word_at_t;  // of a frame

  parameter logic [15:0] EtherTypeIpv4 = 16'h0800;
  parameter logic [7:0] Ipv4WithoutOptions = 8'h45;
  parameter logic [15:0] DontFragment = 16'h4000;
  parameter logic [7:0] TimeToLive = 8'd64;
  parameter logic [7:0] ProtocolUdp = 8'd17;
  parameter int unsigned EthernetBytes = 14;
  parameter int unsigned Ipv4Bytes = 20;
  parameter int unsigned UdpBytes = 8;

  // The head of a frame; the first byte on the wire is the highest one here.
  typedef struct packed {
    logic [47:0] destination_mac;
    logic [47:0] source_mac;
    logic [15:0] ether_type;
    logic [7:0]  version_length;
    logic [7:0]  service;
    logic [15:0] total_length;
    logic [15:0] identification;
    logic [15:0] fragment;
    logic [7:0]  time_to_live;
    logic [7:0]  ip_protocol;
    logic [15:0] ip_checksum;
    logic [31:0] source_ip;
    logic [31:0] destination_ip;
    logic [15:0] source_port;
    logic [15:0] destination_port;
    logic [15:0] udp_length;
    logic [15:0] udp_checksum;
    header_t     header;
  } head_t;

  // A host or switch, and the port of this switch that leads there.
  typedef struct packed {
    logic [7:0]  port;
    logic [47:0] mac;
    logic [31:0] ip;
    logic [15:0] udp_port;
  } address_t;

  // What becomes of a frame.
  typedef enum logic [2:0] {
    VerdictMalformed,      // it is for this switch, and no packet that could have a meaning
    VerdictUndeliverable,  // it is too short to have addresses, or too long
    VerdictForward,        // it is for others
    VerdictControl,        // a packet for the processor beside this switch
    VerdictPacket          // a contribution, a result or a refusal
  } verdict_e;

  typedef struct packed {
    verdict_e verdict;
    bytes_t   bytes;  // of the frame
    head_t    head;
  } packet_t;

  // Tables, and what is written to them. Records of an index replace what was there.
  typedef enum logic [2:0] {
    TableJobs,
    TableGroups,
    TableChildren,  // index: group * Children + child
    TableForward,
    TableTouched    // index: a group, which is not touched from now on; the record is anything
  } table_e;

  typedef struct packed {
    logic         valid;
    logic [31:0]  job;
    logic [127:0] key;  // the low word low
  } job_entry_t;

  typedef struct packed {
    logic                   valid;
    logic [31:0]            job;
    logic [31:0]            group;
    logic                   root;
    address_t               parent;
    logic [15:0]            parent_child;
    logic [15:0]            window;
    logic [15:0]            operand_bytes;
    logic [31:0]            first;     // the sequence that comes first
    logic [MaxChildren-1:0] children;  // those that are there
  } group_entry_t;

  typedef struct packed {
    logic        valid;
    logic [47:0] mac;
    logic [7:0]  port;
  } forward_entry_t;

  parameter int unsigned RecordBits = $bits(group_entry_t);

  // A packet, and what the tables know of it.
  typedef struct packed {
    packet_t                packet;
    logic [7:0]             port;   // that it came to
    logic [7:0]             inlet;  // ... and where it is now
    logic                   job_found;
    logic [15:0]            job_at;
    logic                   group_found;
    logic [15:0]            group_at;
    group_entry_t           group;
    logic [MaxPorts-1:0]    ports;   // to which it goes if it is for others
    logic                   leads;   // ... and there is one
    logic [MaxPorts-1:0]    others;  // inlets whose packets say the same of other children (sw_member)
  } found_t;

  // What is known of a slot; the operands and what was sent lie elsewhere.
  typedef enum logic [1:0] {
    SlotCollecting,
    SlotSentUp,
    SlotResult,
    SlotBeforeFirst  // a result of the round before the first, which nobody asks for
  } slot_state_e;

  typedef struct packed {
    slot_state_e            state;
    logic                   burst;
    logic                   last;
    logic                   empty;     // what was sent
    logic [2:0]             op;
    logic [1:0]             element;
    logic [15:0]            count;
    logic [31:0]            offset;
    logic [31:0]            sequence_number;
    logic [MaxChildren-1:0] arrived;
    logic [MaxChildren-1:0] present;   // of these, those with an operand
    logic [63:0]            tag;       // of what was sent
  } slot_t;

  // What a packet makes a switch do.
  typedef enum logic [2:0] {
    ActDrop,
    ActRefuse,
    ActStore,          // the operand
    ActResendResult,
    ActResendPartial,
    ActTakeResult,
    ActPassRefusal
  } action_e;

  // To whom frames go.
  typedef enum logic [1:0] {
    ToPorts,  // a frame of somebody else's, as it is
    ToSource,
    ToParent,
    ToChildren
  } to_e;

  // Of a frame that leaves by several ports, a word of which each has parts of its own.
  typedef enum logic [1:0] {
    OwnNothing,
    OwnMac,
    OwnChecksum,  // IPv4's, and the first half of an address of it
    OwnIpAndPort  // and the second half
  } own_e;

  // What is to be sent, and what comes before that.
  typedef struct packed {
    to_e                    to;
    header_t                header;
    bytes_t                 bytes;       // of the payload, or of the frame
    logic [MaxPorts-1:0]    targets;     // those it goes to: ports, children, or one
    logic                   all;         // to all children of the group
    address_t               source;
    logic [15:0]            group_at;    // its children, and its parent, get it
    logic [15:0]            job_at;      // its key seals it
    logic [7:0]             inlet;       // whose frame is sent, or its operand stored
    logic                   has_slot;    // what is sent is, or will be, the slot's
    logic [15:0]            slot_at;
    logic                   reduces;     // the operands of the slot's children
    logic [2:0]             op;
    logic [1:0]             element;
    logic [MaxChildren-1:0] present;
    logic                   takes;       // the inlet's operand becomes the slot's result
    logic                   seals;       // with a tag
    logic                   writes_tag;  // it is the slot's
  } answer_t;

  // As the reference counts, and frames: those for others that went on, those that could not leave
  // (for others, or the switch's own to a port that is not there), and those that found no room.
  typedef enum logic [4:0] {
    CountOperands,
    CountResults,
    CountResentResults,
    CountResentPartials,
    CountDuplicates,
    CountRefused,
    CountRefusals,
    CountUnknownJob,
    CountUnknownGroup,
    CountMalformed,
    CountBadTag,
    CountWrongSource,
    CountStale,
    CountPremature,
    CountMismatched,
    CountForwarded,
    CountUndeliverable,
    CountOverrun
  } counter_e;
  parameter int unsigned Counters = 18;

  // A word with its first byte lowest, as it lies on a port, of one with its first byte highest.
  function automatic word_t swapped(word_t word);
    word_t to;
    for (int unsigned i = 0; i < WordBytes; ++i) to[8*i+:8] = word[8*(WordBytes-1-i)+:8];
    return to;
  endfunction

  // The first of those that are there.
  function automatic logic [$clog2(MaxPorts)-1:0] lowest_of(logic [MaxPorts-1:0] there);
    logic [$clog2(MaxPorts)-1:0] at;
    at = '0;
    for (int unsigned i = MaxPorts; i > 0; --i) if (there[i-1]) at = $clog2(MaxPorts)'(i - 1);
    return at;
  endfunction

  // Of two contributions: they say the same of the same message, each of its own child.
  function automatic logic is_same_message(header_t header, header_t other);
    return header.op == other.op && header.header_type == other.header_type &&
        header.count == other.count && header.job == other.job && header.group == other.group &&
        header.header_sequence == other.header_sequence && header.offset == other.offset &&
        header.slot == other.slot && header.flags[BurstFlagBit] == other.flags[BurstFlagBit] &&
        header.flags[LastFlagBit] == other.flags[LastFlagBit];
  endfunction

  // Bytes of an operand, whether it is there or not.
  function automatic logic [18:0] operand_bytes(header_t header);
    return header.header_type[0] ? {header.count, 3'b0} : {1'b0, header.count, 2'b0};
  endfunction

  // Whole words of 64 bits that hold so many bytes.
  function automatic word_at_t words_of(bytes_t bytes);
    return bytes[BytesBits-1:3] + word_at_t'(bytes[2:0] != '0);
  endfunction

  // The same host or switch.
  function automatic logic is_at(address_t address, address_t other);
    return address.ip == other.ip && address.udp_port == other.udp_port;
  endfunction

  // The header of what a slot, number at of the group in, has sent, or will have.
  function automatic header_t header_of(slot_t of, group_entry_t in, logic [15:0] at);
    header_t to;
    to = '0;
    to.version = 8'(Version);
    to.kind = of.state == SlotResult ? KindResult : KindContribute;
    to.flags[EmptyFlagBit] = of.empty;
    to.flags[BurstFlagBit] = of.burst;
    to.flags[LastFlagBit] = of.last;
    to.op = 8'(of.op);
    to.header_type = 8'(of.element);
    to.count = of.count;
    to.job = in.job;
    to.group = in.group;
    to.header_sequence = of.sequence_number;
    to.offset = of.offset;
    to.slot = at;
    to.child = of.state == SlotResult ? 16'(AllChildren) : in.parent_child;
    to.tag = of.tag;
    return to;
  endfunction

  // The sum of five words of IPv4's header, from this one on; the last word is number 0.
  function automatic logic [18:0] ipv4_sum(head_t head, int unsigned first);
    logic [159:0] words;
    logic [18:0] sum;
    words = {
      head.version_length, head.service, head.total_length, head.identification, head.fragment,
      head.time_to_live, head.ip_protocol, head.ip_checksum, head.source_ip, head.destination_ip
    };
    sum = '0;
    for (int unsigned i = 0; i < 5; ++i) sum = sum + 19'(words[16*(i+first)+:16]);
    return sum;
  endfunction

  // The head of a frame of the switch's to one address, before an operand of so many bytes; without
  // IPv4's checksum.
  function automatic head_t head_to(address_t to, logic [47:0] own_mac, logic [31:0] own_ip,
                                    logic [15:0] own_udp_port, header_t header,
                                    logic [15:0] payload_bytes);
    head_t head;
    head = '0;
    head.destination_mac = to.mac;
    head.source_mac = own_mac;
    head.ether_type = EtherTypeIpv4;
    head.version_length = Ipv4WithoutOptions;
    head.udp_length = 16'(UdpBytes + HeaderBytes) + payload_bytes;
    head.total_length = head.udp_length + 16'(Ipv4Bytes);
    head.fragment = DontFragment;
    head.time_to_live = TimeToLive;
    head.ip_protocol = ProtocolUdp;
    head.source_ip = own_ip;
    head.destination_ip = to.ip;
    head.source_port = own_udp_port;
    head.destination_port = to.udp_port;
    head.header = header;
    return head;
  endfunction

endpackage
