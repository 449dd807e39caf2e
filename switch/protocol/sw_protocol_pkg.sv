// SPDX-License-Identifier: Apache-2.0
//
// The switch protocol: names, numbers and records (docs/switch-protocol.md).
// Made by switch/protocol/generate.py from protocol.toml; edit that.
package sw_protocol_pkg;

  // of this protocol; packets of another one are dropped
  parameter int unsigned Version = 1;
  // where a switch listens, unless it is told otherwise
  parameter int unsigned UdpPort = 27182;
  // child ports of a switch
  parameter int unsigned MaxChildren = 64;
  // packets that a group has in flight; a window is a power of two
  parameter int unsigned MaxWindow = 1024;
  // slots per packet of the window: one collects, one keeps a result that somebody may lack
  parameter int unsigned SlotsPerWindow = 2;
  // of a packet that is not part of a burst, at most
  parameter int unsigned BlockOperandBytes = 256;
  // of a packet of a burst, on a path of 1,500 bytes
  parameter int unsigned BurstOperandBytes = 1408;
  // of a packet of a burst, on any path
  parameter int unsigned MaxOperandBytes = 8192;
  // the child of a result: the same bytes go to all
  parameter int unsigned AllChildren = 65535;
  // of a switch
  parameter int unsigned MaxNumber = 1023;
  // lower bits of a group's id, below the number of the switch that allotted it
  parameter int unsigned GroupCounterBits = 22;
  // Ethernet, IPv4 without options, UDP
  parameter int unsigned FrameHeaderBytes = 42;

  // no operand follows: the port is absent from the reduction, but has arrived
  parameter int unsigned EmptyFlagBit = 0;
  // one of several packets, or a long one
  parameter int unsigned BurstFlagBit = 1;
  // the last packet of its message
  parameter int unsigned LastFlagBit = 2;
  // sent before; counted, and otherwise without meaning
  parameter int unsigned AgainFlagBit = 3;

  // What a packet is. The first three carry operands and results, the others control.
  typedef enum logic [7:0] {
    KindContribute = 8'h1,  // an operand, from a child to its switch
    KindResult = 8'h2,  // the result, from a switch to its children
    KindRefuse = 8'h3,  // a switch does not take the contribution
    KindFallBack = 8'h4,  // between hosts of a group: the sender does without the switch
    KindAskLimits = 8'h10,  // what the switch can hold
    KindLimits = 8'h11,  // the answer
    KindInstallJob = 8'h12,  // a job may use the switch from now on
    KindJobInstalled = 8'h13,  // the answer
    KindRemoveJob = 8'h14,  // the job and its groups end
    KindJobRemoved = 8'h15,  // the answer
    KindBuildGroup = 8'h16,  // this switch's part of a tree
    KindGroupBuilt = 8'h17,  // the answer
    KindFreeGroup = 8'h18,  // the group ends
    KindGroupFreed = 8'h19,  // the answer
    KindRefuseControl = 8'h1a  // the answer to a request that cannot be met
  } kind_e;

  // What a switch computes.
  typedef enum logic [7:0] {
    OpSum = 8'h0,  // integers wrap around
    OpMin = 8'h1,  // of floats: a NaN if there is one; -0 is less than +0
    OpMax = 8'h2,  // the same
    OpAnd = 8'h3,  // bit by bit, of integers only
    OpOr = 8'h4,  // bit by bit, of integers only
    OpXor = 8'h5  // bit by bit, of integers only
  } op_e;

  // Of the elements, which are little-endian.
  typedef enum logic [7:0] {
    TypeInt32 = 8'h0,  // two's complement
    TypeInt64 = 8'h1,  // two's complement
    TypeFloat32 = 8'h2,  // IEEE 754 binary32
    TypeFloat64 = 8'h3  // IEEE 754 binary64
  } type_e;

  // Why something is refused.
  typedef enum logic [15:0] {
    ReasonNone = 16'h0,  // it is not
    ReasonUnknownJob = 16'h1,  // the switch has no such job, and no key: the refusal has the tag of what it refuses
    ReasonUnknownGroup = 16'h2,  // the job has no such group here
    ReasonMismatch = 16'h3,  // children disagree about a packet
    ReasonTooLarge = 16'h4,  // the operand is longer than the group's packets
    ReasonNoRoom = 16'h5,  // no memory or no table entry is free
    ReasonQuota = 16'h6,  // the job has as much as it may have
    ReasonBadTree = 16'h7,  // the description of the group cannot be
    ReasonJobDiffers = 16'h8,  // there is such a job, of another instance
    ReasonGroupDiffers = 16'h9  // there is such a group, of another shape
  } reason_e;

  // In front of every packet. The tag covers all but itself.
  typedef struct packed {
    logic [7:0] version;  // of the protocol
    logic [7:0] kind;  // what follows
    logic [7:0] flags;
    logic [7:0] op;  // of operands and results, else 0
    logic [7:0] header_type;  // of operands and results, else 0
    logic [7:0] zero;  // for later versions
    logic [15:0] count;  // elements of this packet, also if it is empty
    logic [31:0] job;  // that is meant; 0: none
    logic [31:0] group;  // of the job
    logic [31:0] header_sequence;  // of the group's packets, from 0; of control: of the request
    logic [31:0] offset;  // elements of the message before this packet
    logic [15:0] slot;  // sequence modulo the group's slots
    logic [15:0] child;  // the sender's port at the switch, or all_children
    logic [15:0] reason;  // of a refusal
    logic [63:0] tag;  // SipHash-2-4 with the job's key, or the administrator's
  } header_t;
  parameter int unsigned HeaderBytes = 38;

  // What a switch can hold, and has free. Payload of limits.
  typedef struct packed {
    logic [15:0] children;  // ports of a group
    logic [15:0] window;  // packets of a group in flight
    logic [15:0] operand_bytes;  // of a packet
    logic [15:0] number;  // the switch's: the upper bits of the group ids that it allots
    logic [31:0] groups;  // table entries
    logic [31:0] free_groups;  // of these
    logic [63:0] memory_bytes;  // for slots
    logic [63:0] free_memory_bytes;  // of these
  } limits_t;
  parameter int unsigned LimitsBytes = 32;

  // Payload of install_job and remove_job. The key is not sent, but derived.
  typedef struct packed {
    logic [63:0] nonce;  // of this instance of the job; never the same twice
    logic [31:0] groups;  // that it may have at a time
    logic [63:0] memory_bytes;  // of slots that it may have
  } job_t;
  parameter int unsigned JobBytes = 20;

  // Payload of build_group, in front of one child per port. Header's group 0: allot an id.
  typedef struct packed {
    logic [31:0] parent_ip;  // of the next switch; 0: this is the root
    logic [15:0] parent_port;  // of UDP
    logic [15:0] parent_child;  // this switch's port there
    logic [15:0] window;  // packets in flight
    logic [15:0] operand_bytes;  // of a packet, at most; a multiple of 8
    logic [15:0] children;  // that follow
  } tree_t;
  parameter int unsigned TreeBytes = 14;

  // A child of a tree. Address 0 and port 0: the port is absent.
  typedef struct packed {
    logic [31:0] ip;  // of a host or a switch
    logic [15:0] port;  // of UDP
  } child_t;
  parameter int unsigned ChildBytes = 6;

endpackage
