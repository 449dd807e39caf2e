// SPDX-License-Identifier: Apache-2.0
//
// A switch: frames in at ports, frames out at ports, each an AXI4-Stream of words of 64 bits as
// sw_parser's. Packets of the protocol are reduced, and what is for others goes on untouched.
//
// Each port keeps one frame; whole ones are worked off one at a time, in turn over the ports: taken_o
// is 1 for one cycle when the next of port taken_port_o is begun, and from there on all that it makes
// the switch send leaves before what later ones do. No port's input waits for another's input.
//
// Outputs wait until what is sent is taken, and with them the engine: who is on the other side must
// take each frame some time, whatever it does with it. Inputs are of that kind themselves: one that has
// no room pauses its sender for patience_i cycles, and then drops its frame (sw_parser), which the
// protocol makes good. So switches may be connected with each other in any way. With a patience without
// end (all ones) an input waits for the engine, and two switches with links between them for each
// other for ever: only senders that never wait for this switch may have that.
//
// A port leads to the processor beside the switch, which loads the tables
// (sw_engine), and gets what is for the switch, and is no contribution, result or refusal.
module sw_switch
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Jobs = 4,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned ForwardEntries = 32,
  parameter  int unsigned Window = 16,
  parameter  int unsigned OperandBytes = BurstOperandBytes,
  parameter  int unsigned TagWordCycles = 2,
  localparam int unsigned PortBits = $clog2(Ports)
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [47:0]                     own_mac_i,
  input  logic [31:0]                     own_ip_i,
  input  logic [15:0]                     own_udp_port_i,
  input  logic [7:0]                      control_port_i,
  input  logic [15:0]                     patience_i,
  input  logic                            control_valid_i,
  output logic                            control_ready_o,
  input  logic [2:0]                      control_table_i,
  input  logic [15:0]                     control_index_i,
  input  logic [RecordBits-1:0]           control_record_i,
  input  logic [Ports-1:0]                s_valid_i,
  output logic [Ports-1:0]                s_ready_o,
  input  logic [Ports-1:0][WordBits-1:0]  s_data_i,
  input  logic [Ports-1:0][WordBytes-1:0] s_keep_i,
  input  logic [Ports-1:0]                s_last_i,
  output logic [Ports-1:0]                m_valid_o,
  input  logic [Ports-1:0]                m_ready_i,
  output word_t                           m_data_o,  // of the port whose valid is 1
  output logic [WordBytes-1:0]            m_keep_o,
  output logic                            m_last_o,
  output logic                            taken_o,
  output logic [PortBits-1:0]             taken_port_o,
  output logic [Groups-1:0]               touched_o,
  output logic [Counters-1:0][63:0]       counters_o
);

  if (Children < 2 || Children > MaxChildren || Ports > MaxChildren || Ports < 2) begin : g_bad_ports
    $error("ports and children are 2 to 64");
  end
  if (Jobs < 2 || Groups < 2 || ForwardEntries < 2) begin : g_bad_tables
    $error("tables have two entries at least");
  end
  if (OperandBytes % 8 != 0 || OperandBytes > MaxOperandBytes) begin : g_bad_operand
    $error("operands are whole words of 64 bits, 8,192 bytes at most");
  end

  logic [Ports-1:0] whole, done, overruns;
  packet_t [Ports-1:0] packets;
  packet_t packet_q;
  word_t [Ports-1:0] words;
  word_at_t word_at;
  logic reads;

  logic busy_q, takes, packet_done;
  logic [PortBits-1:0] port_q, turn;

  for (genvar port = 0; port < Ports; ++port) begin : g_port
    sw_parser u_parser (
      .clk_i,
      .rst_ni,
      .own_mac_i,
      .own_ip_i,
      .own_udp_port_i,
      .s_valid_i     (s_valid_i[port]),
      .s_ready_o     (s_ready_o[port]),
      .s_data_i      (s_data_i[port]),
      .s_keep_i      (s_keep_i[port]),
      .s_last_i      (s_last_i[port]),
      .packet_valid_o(whole[port]),
      .packet_o      (packets[port]),
      .done_i        (done[port]),
      .read_i        (reads),
      .word_at_i     (word_at),
      .word_o        (words[port]),
      .patience_i,
      .overrun_o     (overruns[port])
    );
    assign done[port] = packet_done && port_q == PortBits'(port);
  end

  sw_round_robin #(
    .Ports(Ports)
  ) u_round_robin (
    .clk_i,
    .rst_ni,
    .asks_i(whole),
    .take_i(takes),
    .turn_o(turn)
  );
  assign takes = !busy_q && whole != '0;
  assign taken_port_o = port_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
    end else if (takes) begin
      busy_q <= 1'b1;
    end else if (packet_done) begin
      busy_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (takes) port_q <= turn;
    packet_q <= packets[port_q];
  end

  logic m_valid, counts;
  counter_e counter;
  logic [PortBits-1:0] m_port;

  sw_engine #(
    .Ports(Ports),
    .Children(Children),
    .Jobs(Jobs),
    .Groups(Groups),
    .ForwardEntries(ForwardEntries),
    .Window(Window),
    .OperandBytes(OperandBytes),
    .TagWordCycles(TagWordCycles)
  ) u_engine (
    .clk_i,
    .rst_ni,
    .own_mac_i,
    .own_ip_i,
    .own_udp_port_i,
    .control_port_i,
    .control_valid_i,
    .control_ready_o,
    .control_table_i (table_e'(control_table_i)),
    .control_index_i,
    .control_record_i,
    .packet_valid_i  (busy_q),
    .packet_i        (packet_q),
    .packet_port_i   (port_q),
    .packet_taken_o  (taken_o),
    .packet_done_o   (packet_done),
    .packet_read_o   (reads),
    .packet_word_at_o(word_at),
    .packet_word_i   (words[port_q]),
    .m_valid_o       (m_valid),
    .m_ready_i       (m_ready_i[m_port]),
    .m_port_o        (m_port),
    .m_data_o,
    .m_keep_o,
    .m_last_o,
    .touched_o,
    .counts_o        (counts),
    .counter_o       (counter)
  );
  assign m_valid_o = Ports'(m_valid) << m_port;

  sw_counters #(
    .Ports(Ports)
  ) u_counters (
    .clk_i,
    .rst_ni,
    .counts_i  (counts),
    .counter_i (counter),
    .overruns_i(overruns),
    .counters_o
  );

endmodule
