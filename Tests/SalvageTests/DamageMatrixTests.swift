import GRDB
import LazaretTesting
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Every kind of damage that a copy can be given, on stores of known rows: what physically survives must come back.
@Suite("Every kind of damage")
struct DamageMatrixTests {
  /// Kinds that need a log, or a journal.
  static let ofLogs: Set<DamageKind.Name> = [
    .logMissing, .logFrame, .logHeader, .logTail, .logForeign, .logShape, .logPartial,
  ]
  static let ofJournals: Set<DamageKind.Name> = [.journalMissing, .journalHeader, .journalShape]

  static var kinds: [String] {
    let own = DamageKind.Name.allCases.filter {
      !ofLogs.contains($0) && !ofJournals.contains($0) && ![.emptied, .pointerMaps, .overflow, .drift].contains($0)
    }
    return own.flatMap { name -> [String] in
      switch name {
      case .zero, .random: ["\(name.rawValue):3", "\(name.rawValue):20"]
      case .header: ["header:zero", "header:rand"]
      case .firstPage: ["page1:zero", "page1:rand", "page1:stale"]
      case .truncated: ["trunc:10", "trunc:50"]
      case .prefix: ["prefix:1000"]
      case .embedded: ["embed:12288"]
      default: [name.rawValue]
      }
    }
  }

  /// Kinds after which rows can differ from those that were there, because bits within values are not what they were.
  private static let mayAlter: Set<DamageKind.Name> = [.bitFlips, .sector, .inserted, .removed]

  @Test("Rows that survive come back, and no other row", arguments: Self.kinds)
  func kind(_ text: String) throws {
    let kind = try DamageKind(text)
    for seed in UInt64(1)...UInt64(mutationCount(usually: 2)) {
      let scene = try SalvageScene(seed: seed, books: 700)
      let damaged = try Self.damage(scene, kind, seed: seed)
      let result = try damaged.salvage()
      // Without page 1 only the model tells of tables.
      let isSchemaLost = [.firstPage, .tornFirstPage, .text].contains(kind.name)
      let tables = isSchemaLost ? ["ZBOOK", "ZREADER", "Z_1READERS"] : SalvageScene.tables
      let surviving = try Self.survivors(scene, in: damaged.main, tables: tables)
      var missing: [String: Int] = [:]
      for table in tables {
        let lost = (surviving[table] ?? []).subtracting(result.rows[table] ?? []).count
        if lost > 0 { missing[table] = lost }
      }
      // Two ends of long values that read well in each other's place cannot be told apart; then one row is kept apart.
      let isTold = kind.name == .swapped && missing.values.reduce(0, +) <= 1 && !result.report.isComplete
      #expect(missing == [:] || isTold, "\(text), seed \(seed): of \(surviving.values.reduce(0) { $0 + $1.count })")
      let isMarked = Self.mayAlter.contains(kind.name) && scene.falseRows(result) <= result.report.doubtful
      #expect(scene.falseRows(result) == 0 || isMarked || kind.name == .bitFlips, "\(text), seed \(seed)")
    }
  }

  @Test("Logs that are damaged", arguments: ofLogs.map(\.rawValue).sorted())
  func log(_ text: String) throws {
    let scene = try SalvageScene(
      seed: 5, books: 700, finish: ["UPDATE ZBOOK SET ZPAGES = ZPAGES + 5000 WHERE Z_PK % 9 = 0"], keepsLog: true)
    for seed in UInt64(1)...2 {
      let result = try Self.damage(scene, try DamageKind(text), seed: seed).salvage()
      // Rows that the log did not change are there in any case.
      let unchanged = (scene.truth["ZBOOK"] ?? []).filter { row in
        row.first.flatMap { Int.fromDatabaseValue($0) }.map { $0 % 9 != 0 } ?? false
      }
      #expect(unchanged.subtracting(result.rows["ZBOOK"] ?? []).count <= (text == "wal-badsum" ? 60 : 0), "\(text)")
      for table in ["ZREADER", "Z_1READERS", "NOTES", "WORDS"] {
        #expect(result.rows[table] == scene.truth[table], "\(text), \(table)")
      }
    }
  }

  @Test("Pointer maps that are lost cost no row")
  func pointerMaps() throws {
    let scene = try FileShapeTests.scene("PRAGMA page_size = 1024; PRAGMA auto_vacuum = FULL")
    let folder = try TemporaryFolder()
    let store = try folder.write(scene.main, to: "Store.sqlite")
    let copy = folder.appending("Copy.sqlite")
    _ = try DamagedCopy.make(of: store, at: copy, kinds: [try DamageKind("pointer-maps")], seed: 1)
    let main = try FileSystem().contents(of: copy, limit: 1 << 28)
    let result = try scene.changing { $0.main = main }.salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
  }

  private static func damage(_ scene: SalvageScene, _ kind: DamageKind, seed: UInt64) throws -> SalvageScene {
    let folder = try TemporaryFolder()
    let store = try folder.write(scene.main, to: "Store.sqlite")
    if let log = scene.log { try folder.write(log, to: "Store.sqlite-wal") }
    let copy = folder.appending("Copy.sqlite")
    _ = try DamagedCopy.make(of: store, at: copy, kinds: [kind], seed: seed)
    let log = folder.appending("Copy.sqlite-wal")
    return try scene.changing { damaged in
      damaged.main = try FileSystem().contents(of: copy, limit: 1 << 28)
      damaged.log =
        try FileSystem().status(of: log) == nil ? nil : FileSystem().contents(of: log, limit: 1 << 28)
    }
  }

  /// The rows all of whose pages are somewhere in the damaged file, whole.
  private static func survivors(
    _ scene: SalvageScene, in damaged: [UInt8], tables: [String]
  ) throws -> [String: SalvageScene.Rows] {
    let size = SalvageScene.pageSize
    let length = scene.main.count
    var there: Set<[UInt8]> = []
    // What stands before the file may have any length.
    let shift = damaged.count > length ? Self.shift(scene.main, in: damaged) : 0
    for start in stride(from: shift, to: damaged.count - size + 1, by: size) {
      there.insert(Array(damaged[start..<(start + size)]))
    }
    func isThere(_ page: UInt32) -> Bool {
      page == 1 || there.contains(Array(scene.main[((Int(page) - 1) * size)..<(Int(page) * size)]))
    }
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    var result: [String: SalvageScene.Rows] = [:]
    for entry in try database.schema().tables where tables.contains(entry.name) {
      let truth = Dictionary(
        (scene.truth[entry.name] ?? []).map { ($0.first, $0) }, uniquingKeysWith: { first, _ in first })
      guard entry.tableDefinition?.isWithoutRowid != true else { continue }
      var rows = try database.rows(root: entry.rootPage)
      var pages: [(rowid: Int64, page: UInt32, length: Int)] = []
      while let row = try rows.next() { pages.append((row.rowid, row.page, row.record.payload.count)) }
      for row in pages where isThere(row.page) {
        var isWhole = true
        let local = database.geometry.localLength(of: row.length, onTableLeaf: true)
        if local < row.length {
          let page = try database.bTreePage(row.page)
          let cell = (0..<(page?.cellCount ?? 0)).compactMap { page?.cell(at: $0) }.first { $0.rowid == row.rowid }
          var next = cell?.overflowPage ?? 0
          while next > 0, isWhole {
            isWhole = isThere(next)
            let start = (Int(next) - 1) * size
            next = scene.main[start..<(start + 4)].reduce(0) { $0 << 8 | UInt32($1) }
          }
        }
        if isWhole, let values = truth[row.rowid.databaseValue] { result[entry.name, default: []].insert(values) }
      }
    }
    return result
  }

  private static func shift(_ original: [UInt8], in damaged: [UInt8]) -> Int {
    let start = original[0..<64]
    return (0...(damaged.count - original.count)).first { damaged[$0..<($0 + 64)] == start } ?? 0
  }
}
