// SPDX-License-Identifier: Apache-2.0
//
// What comes in at a port: keeps one frame, reads its head, and says what it is. The next frame waits
// until the reader is done with this one, but only for patience_i cycles (sw_patience).
//
// The port is an AXI4-Stream of words of 64 bits: heads of packets are whole words of these, and the
// tag is made of such. keep is all ones but in a frame's last word, where it has the frame's last
// bytes in front. A frame of more than LongestFrame bytes is taken to its end; only its head is kept.
//
// packet_valid_o: packet_o's head is there, or all of the frame, if it has less; received_o words of it
// can be read. likely_o, a cycle later, if the head is one of a packet. settled_o holds, with what
// the frame is, from when all of it is there to done_i. word_o is the frame's word word_at_i of two
// cycles before, of those in which read_i is 1: in others it stays.
// A frame for this switch has its addresses and its port of UDP, is whole, and not one
// of IPv4's fragments; it is malformed if lengths, IPv4's checksum or the fields of the protocol's
// header are not as switch/protocol/packet.cc has them. UDP's checksum is not looked at: the tag,
// which is checked elsewhere, covers more. Nothing of the head counts but where the verdict says so.
//
// With FastClock all that is said of a word is said a cycle later.
module sw_parser
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned LongestFrame = FrameBytes,
  parameter int unsigned FastClock = 0
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [47:0]          own_mac_i,
  input  logic [31:0]          own_ip_i,
  input  logic [15:0]          own_udp_port_i,
  input  logic                 s_valid_i,
  output logic                 s_ready_o,
  input  word_t                s_data_i,
  input  logic [WordBytes-1:0] s_keep_i,
  input  logic                 s_last_i,
  output logic                 packet_valid_o,
  output packet_t              packet_o,
  output logic                 likely_o,
  output word_at_t             received_o,
  output logic                 settled_o,
  input  logic                 done_i,
  input  logic                 read_i,
  input  word_at_t             word_at_i,
  output word_t                word_o,
  input  logic [15:0]          patience_i,
  output logic                 overrun_o
);

  localparam int unsigned Words = (LongestFrame + WordBytes - 1) / WordBytes;
  localparam int unsigned AtBits = $clog2(Words);
  localparam word_at_t TooManyWords = word_at_t'(Words + 1);

  word_t frame[Words], word_q;
  word_t [HeadWords-1:0] head_q;  // the first word highest
  word_at_t at_q;  // the next word; at most TooManyWords
  logic [HeadWords-1:0] is_at_q;  // ... of the head, one bit each
  bytes_t bytes_q;
  word_at_t received_q;
  logic whole_q, verdict_due_q, settled_q;
  word_at_t at_next;
  logic takes, drops;  // the frame that is coming

  // A word on its way to where it is kept, and that what is kept is a whole frame, or a head.
  typedef struct packed {
    word_t                data;
    logic [WordBytes-1:0] keep;
    word_at_t             at;
    word_at_t             next;
  } put_t;
  put_t put;
  logic puts, is_whole, has_head;
  logic [HeadWords-1:0] puts_head;  // ... in the head, one bit each

  assign s_ready_o = !whole_q || drops;
  assign takes = s_valid_i && !whole_q && !drops;

  // With a whole frame here, what is offered is the first word of the next.
  sw_patience u_patience (
    .clk_i,
    .rst_ni,
    .patience_i,
    .waits_i  (s_valid_i && whole_q && !done_i),
    .s_valid_i,
    .s_last_i,
    .drops_o  (drops),
    .overrun_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      at_q <= '0;
      is_at_q <= HeadWords'(1);
      whole_q <= 1'b0;
      verdict_due_q <= 1'b0;
      settled_q <= 1'b0;
    end else begin
      verdict_due_q <= is_whole && !done_i;
      settled_q <= verdict_due_q && !done_i;
      if (takes) begin
        at_q <= s_last_i ? '0 : at_next;
        is_at_q <= s_last_i ? HeadWords'(1) : is_at_q << 1;
        whole_q <= s_last_i;
      end else if (done_i) begin
        whole_q <= 1'b0;
      end
    end
  end
  assign at_next = at_q == TooManyWords ? TooManyWords : at_q + 1'b1;

  if (FastClock != 0) begin : g_put_later
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {puts, puts_head, is_whole, has_head} <= '0;
      end else begin
        puts <= takes;
        puts_head <= takes ? is_at_q : '0;
        is_whole <= whole_q && !done_i;
        has_head <= at_q >= word_at_t'(HeadWords);
      end
    end
    always_ff @(posedge clk_i) put <= '{data: s_data_i, keep: s_keep_i, at: at_q, next: at_next};
  end else begin : g_put_now
    assign puts = takes;
    assign puts_head = takes ? is_at_q : '0;
    assign is_whole = whole_q;
    assign has_head = at_q >= word_at_t'(HeadWords);
    assign put = '{data: s_data_i, keep: s_keep_i, at: at_q, next: at_next};
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < HeadWords; ++i) begin
      if (puts_head[i]) head_q[HeadWords-1-i] <= swapped(put.data);
    end
    if (puts) begin
      if (put.at < word_at_t'(Words)) frame[AtBits'(put.at)] <= put.data;
      received_q <= put.next;
      bytes_q <= bytes_t'({put.at, 3'b0}) + bytes_t'($countones(put.keep));
    end
    if (read_i) begin
      word_q <= frame[AtBits'(word_at_i)];
      word_o <= word_q;
    end
  end

  logic unused_at;
  assign unused_at = ^word_at_i;

  head_t head;
  header_t header;
  bytes_t payload_bytes;
  assign head = head_q;
  assign header = head.header;
  assign payload_bytes = bytes_q - bytes_t'(HeadBytes);

  // Of words before the last one of a frame that has all of them, a cycle before that is looked at.
  logic has_mac_q, is_udp_q, has_ip_q;
  always_ff @(posedge clk_i) begin
    has_mac_q <= head.destination_mac == own_mac_i;
    is_udp_q <= head.ether_type == EtherTypeIpv4 && head.version_length == Ipv4WithoutOptions &&
        (head.fragment & ~DontFragment) == '0 && head.ip_protocol == ProtocolUdp;
    has_ip_q <= head.destination_ip == own_ip_i && head.destination_port == own_udp_port_i;
  end

  // What is known of the head, a cycle later.
  logic is_own, has_lengths, is_header, is_defined, has_operand, has_meaning, is_control;
  logic is_own_q, has_lengths_q, is_header_q, has_operand_q, has_payload_q;
  logic [18:0] sum_low_q, sum_high_q;
  logic [19:0] sum;
  verdict_e verdict_q;

  assign is_own = bytes_q >= bytes_t'(FrameHeaderBytes) && has_mac_q && is_udp_q && has_ip_q;

  assign has_lengths = bytes_q >= bytes_t'(HeadBytes) && bytes_q <= bytes_t'(LongestFrame) &&
      head.total_length == 16'(bytes_q) - 16'(EthernetBytes) &&
      head.udp_length == head.total_length - 16'(Ipv4Bytes);

  assign is_header = header.version == 8'(Version) && header.zero == '0 &&
      header.flags[7:4] == '0 && header.reason <= ReasonGroupDiffers;

  assign is_defined = header.op <= OpXor && header.header_type <= TypeFloat64 &&
      (header.op < OpAnd || header.header_type <= TypeInt64);

  always_comb begin
    has_operand = is_defined;
    if (operand_bytes(header) > (header.flags[BurstFlagBit] ? 19'(MaxOperandBytes)
                                                            : 19'(BlockOperandBytes))) begin
      has_operand = 1'b0;
    end
    if (header.flags[EmptyFlagBit]) begin
      has_operand &= payload_bytes == '0;
    end else begin
      has_operand &= header.count != '0 && 19'(payload_bytes) == operand_bytes(header);
    end
  end

  always_comb begin
    is_control = 1'b0;
    unique case (header.kind)
      KindContribute: begin
        has_meaning = header.reason == ReasonNone && header.job != '0 &&
            header.child < 16'(MaxChildren) && has_operand_q;
      end
      KindResult: begin
        has_meaning = header.reason == ReasonNone && header.job != '0 &&
            header.child == 16'(AllChildren) && !header.flags[AgainFlagBit] && has_operand_q;
      end
      KindRefuse: has_meaning = header.reason != ReasonNone && !has_payload_q;
      KindFallBack, KindAskLimits, KindLimits, KindInstallJob, KindJobInstalled, KindRemoveJob,
      KindJobRemoved, KindBuildGroup, KindGroupBuilt, KindFreeGroup, KindGroupFreed,
      KindRefuseControl: begin
        has_meaning = 1'b1;  // so far; the processor reads on
        is_control = 1'b1;
      end
      default: has_meaning = 1'b0;
    endcase
  end

  assign packet_valid_o = is_whole || has_head;
  assign received_o = received_q;
  assign settled_o = settled_q;
  assign packet_o.head = head;
  assign packet_o.bytes = bytes_q;
  assign packet_o.verdict = verdict_q;

  // All ones, once what is above 16 bits is added to what is below: nothing can be carried then.
  logic has_sum;
  assign sum = 20'(sum_low_q) + 20'(sum_high_q);
  assign has_sum = sum[15:0] == 16'hffff - 16'(sum[19:16]);

  always_ff @(posedge clk_i) begin
    is_own_q <= is_own;
    likely_o <= is_own && header.kind inside {KindContribute, KindResult, KindRefuse} &&
        head.udp_length >= 16'(UdpBytes + HeaderBytes) &&
        head.udp_length <= 16'(UdpBytes + HeaderBytes + MaxOperandBytes);
    has_lengths_q <= has_lengths;
    is_header_q <= is_header;
    has_operand_q <= has_operand;
    has_payload_q <= payload_bytes != '0;
    sum_low_q <= ipv4_sum(head, 0);
    sum_high_q <= ipv4_sum(head, 5);
    if (!is_own_q) begin
      verdict_q <= bytes_q < bytes_t'(EthernetBytes) || bytes_q > bytes_t'(LongestFrame) ?
          VerdictUndeliverable : VerdictForward;
    end else if (!has_lengths_q || !has_sum || !is_header_q || !has_meaning) begin
      verdict_q <= VerdictMalformed;
    end else begin
      verdict_q <= is_control ? VerdictControl : VerdictPacket;
    end
  end

  keep_is_whole :
  assert property (@(posedge clk_i) disable iff (!rst_ni) s_valid_i |->
      s_last_i ? s_keep_i[0] && (s_keep_i & (s_keep_i + 1'b1)) == '0 : &s_keep_i);
  done_with_a_packet :
  assert property (@(posedge clk_i) disable iff (!rst_ni) done_i |-> settled_o);

endmodule
