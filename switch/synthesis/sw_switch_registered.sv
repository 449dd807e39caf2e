// SPDX-License-Identifier: Apache-2.0
//
// A switch between registers: what it takes of a chip, and its clock. Of the counters one at a time
// can be seen. Not to be used: ready comes a cycle late.
module sw_switch_registered
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 6,  // four children, a parent, the processor
  parameter  int unsigned DataBits = WordBits,
  parameter  int unsigned Inlets = 5,
  parameter  int unsigned Children = 4,
  parameter  int unsigned Jobs = 2,
  parameter  int unsigned Groups = 2,
  parameter  int unsigned ForwardEntries = 8,
  parameter  int unsigned Window = 4,
  parameter  int unsigned OperandBytes = 1024,
  parameter  int unsigned TagWordCycles = 4,
  parameter  int unsigned Frames = 1,
  parameter  int unsigned QueueWords = 512,
  parameter  int unsigned LongestFrame = 1518,
  parameter  int unsigned BeatCycles = 4,
  parameter  int unsigned FastClock = 1,
  localparam int unsigned DataBytes = DataBits / 8
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
  input  logic [Ports-1:0][DataBits-1:0]  s_data_i,
  input  logic [Ports-1:0][DataBytes-1:0] s_keep_i,
  input  logic [Ports-1:0]                s_last_i,
  output logic [Ports-1:0]                m_valid_o,
  input  logic [Ports-1:0]                m_ready_i,
  output logic [Ports-1:0][DataBits-1:0]  m_data_o,
  output logic [Ports-1:0][DataBytes-1:0] m_keep_o,
  output logic [Ports-1:0]                m_last_o,
  output logic [Ports-1:0]                taken_o,
  output logic [Groups-1:0]               touched_o,
  input  logic [4:0]                      counter_at_i,
  output logic [63:0]                     counter_o
);

  logic [47:0] own_mac;
  logic [31:0] own_ip;
  logic [15:0] own_udp_port, patience, control_index;
  logic [7:0] control_port;
  logic control_valid, control_ready;
  logic [2:0] control_table;
  logic [RecordBits-1:0] control_record;
  logic [Ports-1:0] s_valid, s_ready, s_last, m_valid, m_ready;
  logic [Ports-1:0][DataBits-1:0] s_data;
  logic [Ports-1:0][DataBytes-1:0] s_keep;
  logic [Ports-1:0][DataBits-1:0] m_data;
  logic [Ports-1:0][DataBytes-1:0] m_keep;
  logic [Ports-1:0] m_last;
  logic [Ports-1:0] taken;
  logic [Groups-1:0] touched;
  logic [4:0] counter_at;
  logic [Counters-1:0][63:0] counters;

  sw_switch #(
    .Ports(Ports),
    .DataBits(DataBits),
    .Inlets(Inlets),
    .Children(Children),
    .Jobs(Jobs),
    .Groups(Groups),
    .ForwardEntries(ForwardEntries),
    .Window(Window),
    .OperandBytes(OperandBytes),
    .TagWordCycles(TagWordCycles),
    .Frames(Frames),
    .QueueWords(QueueWords),
    .LongestFrame(LongestFrame),
    .BeatCycles(BeatCycles),
    .FastClock(FastClock)
  ) u_switch (
    .clk_i,
    .rst_ni,
    .own_mac_i       (own_mac),
    .own_ip_i        (own_ip),
    .own_udp_port_i  (own_udp_port),
    .control_port_i  (control_port),
    .patience_i      (patience),
    .control_valid_i (control_valid),
    .control_ready_o (control_ready),
    .control_table_i (control_table),
    .control_index_i (control_index),
    .control_record_i(control_record),
    .s_valid_i       (s_valid),
    .s_ready_o       (s_ready),
    .s_data_i        (s_data),
    .s_keep_i        (s_keep),
    .s_last_i        (s_last),
    .m_valid_o       (m_valid),
    .m_ready_i       (m_ready),
    .m_data_o        (m_data),
    .m_keep_o        (m_keep),
    .m_last_o        (m_last),
    .taken_o         (taken),
    .touched_o       (touched),
    .counters_o      (counters)
  );

  always_ff @(posedge clk_i) begin
    own_mac <= own_mac_i;
    own_ip <= own_ip_i;
    own_udp_port <= own_udp_port_i;
    control_port <= control_port_i;
    patience <= patience_i;
    control_valid <= control_valid_i;
    control_table <= control_table_i;
    control_index <= control_index_i;
    control_record <= control_record_i;
    s_valid <= s_valid_i;
    s_data <= s_data_i;
    s_keep <= s_keep_i;
    s_last <= s_last_i;
    m_ready <= m_ready_i;
    counter_at <= counter_at_i;
    control_ready_o <= control_ready;
    s_ready_o <= s_ready;
    m_valid_o <= m_valid;
    m_data_o <= m_data;
    m_keep_o <= m_keep;
    m_last_o <= m_last;
    taken_o <= taken;
    touched_o <= touched;
    counter_o <= counters[counter_at];
  end

endmodule
