internal import PageRecovery
internal import SQLiteFormat
internal import StoreFiles

/// What every page is: `data/page-map.json`, run by run with state, table, and the kind of page that its first byte says.
struct PageMapFile {
  let text: [UInt8]

  private struct Run {
    var first: UInt32
    var last: UInt32
    var state: PageStates.State
    var owner: Int?
    var type: String
  }

  /// - Parameters:
  ///   - states: the states of the pages.
  ///   - pages: the pages themselves; nil where there are none to be had.
  init(_ states: PageStates, pages: EvidencePages?, isCancelled: () -> Bool) throws {
    var runs: [Run] = []
    for run in states.runs {
      for number in run.pages {
        if number % 4096 == 0, isCancelled() { throw StoreExporter.cancelled() }
        let type = try Self.type(of: number, run.state, pages)
        if let last = runs.last, last.state == run.state, last.owner == run.owner, last.type == type {
          runs[runs.count - 1].last = number
        } else {
          runs.append(Run(first: number, last: number, state: run.state, owner: run.owner, type: type))
        }
      }
    }
    let owners = states.owners.map { owner in
      "\"table\":\(JSON.literal(owner.table))" + (owner.isIndex ? ",\"index\":\(JSON.literal(owner.name))" : "")
    }
    let counts = PageStates.State.allCases.map { "\"\($0.rawValue)\":\(states.counts[$0] ?? 0)" }.joined(separator: ",")
    var text = Array(
      "{\"formatVersion\":1,\"pageSize\":\(states.pageSize),\"total\":\(states.total),\"mapped\":\(states.mapped),\n"
        .utf8)
    text += "\"counts\":{\(counts)},\n\"runs\":[".utf8
    for (index, run) in runs.enumerated() {
      text += (index == 0 ? "\n" : ",\n").utf8
      text +=
        "{\"first\":\(run.first),\"last\":\(run.last),\"state\":\"\(run.state.rawValue)\",\"type\":\"\(run.type)\"".utf8
      if let owner = run.owner { text += ("," + owners[owner]).utf8 }
      text += "}".utf8
    }
    text += "\n]}\n".utf8
    self.text = text
  }

  private static func type(
    of number: UInt32, _ state: PageStates.State, _ pages: EvidencePages?
  ) throws -> String {
    switch state {
    case .overflow, .special, .free: return state.rawValue
    case .healthy, .orphan, .damaged, .unplaced, .unreadable: break
    }
    guard let content = try pages?.page(number) else { return "missing" }
    let start = number == 1 ? DatabaseHeader.length : 0
    guard content.bytes.count > start else { return "missing" }
    switch PageKind(rawValue: content.bytes[start]) {
    case .tableLeaf: return "table-leaf"
    case .tableInterior: return "table-interior"
    case .indexLeaf: return "index-leaf"
    case .indexInterior: return "index-interior"
    case nil: return "other"
    }
  }
}
