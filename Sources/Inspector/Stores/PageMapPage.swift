import HTTPServer
import Platform
import SQLiteFormat
import Salvage

struct PageMapPage: StoreSubpage {
  let store: ListedStore
  let look: PagePart<DamageLook>

  init(_ store: ListedStore, _ parts: InspectorParts, isAsked: Bool = false) {
    self.store = store
    look = PagePart { try parts.damage(of: store, isAsked: isAsked) }
  }

  var title: String { "Pages of \(store.name)" }
  var scripts: [String] { look.value?.isPreparing == true ? ["records.js"] : [] }

  func encode(to encoder: any Encoder) throws {
    guard let report = look.value?.report else {
      return try look.map { DamagePayload(look: $0, store: store) }.encode(to: encoder)
    }
    try PageMapDrawing(report: report, store: store.id).payload.encode(to: encoder)
  }

  func content(_ frame: PageFrame) -> HTML {
    let map = look.html { look in
      if let waiting = look.waiting(.store(store.id, "map")) { return .panel("Pages", waiting) }
      guard let report = look.report else { return .empty }
      return """
        <p class="soft">\(counted(report.pages.total, "page")) of \(grouped(report.pages.pageSize)) bytes. Each cell is a \
        page; Enter or a click opens its bytes, N goes to the next damage.</p>\(look.asOf(frame.now))
        \(PageMapDrawing(report: report, store: store.id).html)
        \(DamageByPage(report: report, store: store).html)
        <h2>Tables and indexes</h2>\(owners(report))
        """
    }
    return "<h1>\(title)</h1>\(StoreTab.bar(store, .map, isDamaged: isDamaged))\(map)"
  }

  private var isDamaged: Bool {
    guard let report = look.value?.report else { return false }
    return !report.isComplete
      || report.pages.counts.contains { state, count in
        count > 0 && (state == .damaged || state == .unreadable || state == .unplaced || state == .orphan)
      }
  }

  private func owners(_ report: SalvageReport) -> HTML {
    let (pages, names) = (report.pages, TableNames(report))
    var counts: [Int: [PageStates.State: Int64]] = [:]
    for run in pages.runs { counts[run.owner ?? -1, default: [:]][run.state, default: 0] += Int64(run.pages.count) }
    let states = PageStates.State.allCases.filter { (pages.counts[$0] ?? 0) > 0 }
    let rows = counts.sorted { $0.key < $1.key }.map { owner, numbers -> HTML in
      let name = pages.owners.indices.contains(owner) ? printable(names.words(pages.owners[owner])) : "no table's"
      return .row("\(name)", wraps: true, "\(states.map { HTML.number(numbers[$0] ?? 0) })")
    }
    return .table("Pages by table", ["Table"] + states.map { .number($0.rawValue) }, rows)
  }
}

/// A store's page map, for a script and without.
struct PageMapDrawing: Sendable {
  let report: SalvageReport
  let store: StoreID

  private var pages: PageStates { report.pages }

  /// The most cells without scripts; a shared cell shows the worst state.
  static let maximumCells = 4000

  /// The number of table colours; smaller tables share the last.
  static let colours = 10

  var payload: JSON.Object {
    let counts = PageStates.State.allCases.map { ($0.rawValue, pages.counts[$0] ?? 0) }
    let (names, colours) = (TableNames(report), colourByOwner)
    return [
      "pageSize": pages.pageSize, "pages": pages.total, "mapped": pages.mapped,
      "href": RequestTarget.store(store, "pages").path + "/{page}",
      "counts": Dictionary(uniqueKeysWithValues: counts), "tables": pages.owners.map { printable($0.words) },
      "names": pages.owners.map { printable(names.words($0)) }, "colours": colours,
      "runs": pages.runs.map { run -> JSON.Value in
        [.string(String(run.state.letter)), .integer(Int64(run.owner ?? -1)), .integer(Int64(run.pages.count))]
      },
    ]
  }

  /// The colours; indexes use their table's, and the largest tables have their own.
  private var colourByOwner: [Int] {
    var sizes: [String: Int] = [:]
    for run in pages.runs {
      if let owner = run.owner, pages.owners.indices.contains(owner) {
        sizes[pages.owners[owner].table, default: 0] += run.pages.count
      }
    }
    let tables = sizes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
    let colours = tables.enumerated().reduce(into: [String: Int]()) {
      $0[$1.element] = min($1.offset, Self.colours - 1)
    }
    return pages.owners.map { colours[$0.table] ?? Self.colours - 1 }
  }

  var html: HTML {
    """
    <div class="map" data-map="\(RequestTarget.store(store, "map").twin)">
    <div class="map-still">\(drawing)</div>
    <div class="row no-print"><button data-zoom="2" hidden aria-label="Enlarge">+</button>\
    <button data-zoom="0.5" hidden aria-label="Shrink">−</button>\
    <button data-colour hidden>Colour by state</button></div>
    \(tableKey)\(legend)
    </div>
    """
  }

  /// The tables with colours; a script makes them filter buttons.
  private var tableKey: HTML {
    let names = TableNames(report)
    let colours = colourByOwner
    var tables: [(colour: Int, names: [String], pages: Int)] = (0..<Self.colours).map { ($0, [], 0) }
    var seen: Set<String> = []
    for (place, owner) in pages.owners.enumerated() where seen.insert(owner.table).inserted {
      tables[colours[place]].names.append(printable(names.table(owner.table)))
    }
    for run in pages.runs {
      if let owner = run.owner, colours.indices.contains(owner) { tables[colours[owner]].pages += run.pages.count }
    }
    let items = tables.filter { $0.pages > 0 }.map { table -> HTML in
      let words = table.names.count > 2 ? "\(table.names.count) smaller tables" : table.names.joined(separator: ", ")
      return """
        <li data-table-colour="\(table.colour)"><span class="swatch table-\(table.colour)" aria-hidden="true"></span>\(words) \
        <span class="soft">\(grouped(table.pages))</span></li>
        """
    }
    return items.isEmpty ? .empty : "<ul class=\"legend tables\" aria-label=\"Tables\">\(items)</ul>"
  }

  private var legend: HTML {
    let items = PageStates.State.allCases.compactMap { state -> HTML? in
      guard let count = pages.counts[state], count > 0 else { return nil }
      return """
        <li title="\(state.meaning)" data-state="\(String(state.letter))"><span class="swatch \(state.rawValue)" aria-hidden="true"></span>\
        \(state.rawValue) <span class="soft">\(grouped(count))</span></li>
        """
    }
    return "<ul class=\"legend states\" aria-label=\"States of pages\">\(items)</ul>"
  }

  /// The pages, coloured by table, or by state if damaged.
  private var drawing: HTML {
    let share = max(1, (pages.mapped + Self.maximumCells - 1) / Self.maximumCells)
    let cells = cells(of: share)
    guard !cells.isEmpty else { return "<p class=\"soft\">The report has no map of the pages.</p>" }
    let words = PageStates.State.allCases.compactMap { state in
      pages.counts[state].map { "\(grouped($0)) \(state.rawValue)" }
    }.joined(separator: ", ")
    return PageStates.drawing(of: cells, label: "Map of \(grouped(pages.total)) pages: \(words)")
  }

  private func cells(of share: Int) -> [PageStates.Cell] {
    let colours = colourByOwner
    var cells: [PageStates.Cell] = []
    var filled = 0
    for run in pages.runs {
      let cell = PageStates.Cell(
        state: run.state, colour: run.owner.flatMap { colours.indices.contains($0) ? colours[$0] : nil })
      var left = run.pages.count
      while left > 0 {
        if filled == 0 { cells.append(cell) }
        let step = min(left, share - filled)
        if cell.state.weight > cells[cells.count - 1].state.weight { cells[cells.count - 1] = cell }
        filled = (filled + step) % share
        left -= step
      }
    }
    return cells
  }
}

extension PageStates.Owner {
  var words: String { isIndex ? "\(name) (index of \(table))" : name }
}

extension PageStates {
  struct Cell: Hashable {
    var state: State
    var colour: Int?

    /// The CSS class, by table if undamaged, else by state.
    fileprivate var style: String {
      switch state {
      case .healthy, .overflow, .orphan: colour.map { "table-\($0)" } ?? state.rawValue
      case .damaged, .free, .special, .unplaced, .unreadable: state.rawValue
      }
    }
  }

  /// Draws cells, merging equal ones to rectangles.
  static func drawing(of cells: [Cell], label: String) -> HTML {
    let across = min(cells.count, max(16, Int(Double(cells.count * 4).squareRoot().rounded(.up))))
    let down = (cells.count + across - 1) / across
    var shapes = HTML.empty
    var start = 0
    while start < cells.count {
      var end = start + 1
      while end < cells.count, end % across != 0, cells[end] == cells[start] { end += 1 }
      shapes += """
        <rect class="\(cells[start].style)" x="\(start % across * 10)" y="\(start / across * 10)" \
        width="\((end - start) * 10 - 1)" height="9"/>
        """
      start = end
    }
    return "<svg viewBox=\"0 0 \(across * 10) \(down * 10)\" role=\"img\" aria-label=\"\(label)\">\(shapes)</svg>"
  }
}

extension PageStates.State {
  var meaning: String {
    switch self {
    case .healthy: "part of its table, found from its root"
    case .orphan: "nothing led to it; placed by its content"
    case .damaged: "damaged; what was left of it was read"
    case .free: "free, or no longer in use"
    case .overflow: "holds the rest of long values"
    case .special: "a pointer map, or the page of the locks"
    case .unplaced: "holds rows that fit no table"
    case .unreadable: "zeros, or nothing that can be read"
    }
  }

  /// The severity; shared cells show the worst.
  fileprivate var weight: Int {
    switch self {
    case .free: 0
    case .special: 1
    case .healthy: 2
    case .overflow: 3
    case .orphan: 4
    case .unplaced: 5
    case .damaged: 6
    case .unreadable: 7
    }
  }
}

/// The displayed names of tables and indexes.
struct TableNames: Sendable {
  /// The entities by uppercase table name.
  private let entities: [String: String]
  private let isCoreData: Bool

  init(_ report: SalvageReport) {
    isCoreData = report.isCoreData
    var names: [String: [String]] = [:]
    for entity in report.entities where entity.name != entity.table {
      names[entity.table.uppercased(), default: []].append(entity.name)
    }
    entities = names.reduce(into: [:]) { $0[$1.key] = Self.root($1.value, of: $1.key) }
  }

  /// The entity that the table is named after, else the first.
  private static func root(_ names: [String], of table: String) -> String {
    if let own = names.first(where: { "Z" + $0.uppercased() == table }) { return own }
    return names.count > 1 ? "\(names.min() ?? "") and others" : names.first ?? table
  }

  func words(_ owner: PageStates.Owner) -> String {
    guard owner.isIndex else { return table(owner.name) }
    if owner.name.lowercased().hasPrefix("sqlite_autoindex_") { return "key of \(table(owner.table))" }
    return "index \(indexName(owner)) of \(table(owner.table))"
  }

  /// Returns a table's entity or role in Core Data.
  func table(_ name: String) -> String {
    let key = name.uppercased()
    if key == "SQLITE_SCHEMA" || key == "SQLITE_MASTER" { return "the schema" }
    guard isCoreData else { return name }
    if let entity = entities[key] { return entity }
    switch key {
    case "Z_METADATA": return "Core Data's metadata"
    case "Z_PRIMARYKEY": return "Core Data's highest keys"
    case "Z_MODELCACHE": return "Core Data's copy of the model"
    case "ACHANGE": return "Core Data's history: changes"
    case "ATRANSACTION": return "Core Data's history: transactions"
    case "ATRANSACTIONSTRING": return "Core Data's history: names"
    default: break
    }
    // A many-to-many join table: `Z_`, a number, and its name.
    let rest = key.hasPrefix("Z_") ? key.dropFirst(2).drop { $0.isNumber } : ""
    return rest.isEmpty || rest.count + 2 == key.count ? name : "relationship \(rest.lowercased())"
  }

  /// The index name without the table's.
  private func indexName(_ owner: PageStates.Owner) -> String {
    guard isCoreData else { return owner.name }
    let ending = "_INDEX"
    let start = owner.table + "_Z"
    if owner.name.hasPrefix(start), owner.name.hasSuffix(ending), owner.name.utf8.count > start.utf8.count + 6 {
      let column = owner.name.dropFirst(start.count).dropLast(ending.count).lowercased()
      return column == "_ent" ? "entity" : String(column.drop { $0 == "_" || $0.isNumber })
    }
    // `Z_Entity_name`, Core Data's name for a model's fetch index.
    let parts = owner.name.split(separator: "_", maxSplits: 2, omittingEmptySubsequences: false)
    return parts.count == 3 && parts[0] == "Z" ? String(parts[2]) : owner.name
  }
}
