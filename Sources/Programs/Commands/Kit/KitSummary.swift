import RecoveryKit
import StoreCoordination

/// A recovery kit as `kit create` and `kit show` print it.
struct KitSummary: Encodable {
  struct Group: Encodable {
    var entity: Int64
    var rows: Int64
    var keys: KeyRanges?
  }

  struct Table: Encodable {
    var name: String
    var root: UInt32
    var rows: Int64
    var pages: Int
    var sums: Int
    var groups: [Group]
  }

  /// The most ranges of rowids of a group that are printed.
  private static let maximumRanges = 1000

  var kit: PathText
  var size: Int
  var date: String
  var storeUUID: String?
  var generation: String?
  var pageSize: Int
  var pageCount: UInt32
  var rows: Int64
  var tables: [Table]

  init(_ kit: RecoveryKit, path: FilePath, size: Int) {
    self.kit = PathText(path)
    self.size = size
    date = kit.date.rfc3339
    storeUUID = kit.storeUUID
    generation = kit.generation
    pageSize = kit.file.pageSize
    pageCount = kit.file.pageCount
    rows = kit.rows
    tables = kit.tables.map { table in
      Table(
        name: table.name, root: table.root, rows: table.rows, pages: table.leaves.count, sums: table.sums.count,
        groups: table.groups.map {
          Group(entity: $0.entity, rows: $0.rows, keys: $0.keys?.prefix(ranges: Self.maximumRanges))
        })
    }
  }

  var text: String {
    var lines = "\(printable(kit.text)): a recovery kit of \(date), \(readableSize(Int64(size)))\n"
    if let storeUUID { lines += "  Store \(printable(storeUUID))\n" }
    if let generation { lines += "  Generation \(printable(generation))\n" }
    lines += "  \(counted(pageCount, "page")) of \(grouped(pageSize)) bytes, \(counted(rows, "row"))\n\n"
    var table = TextTable(["", "rows", "pages", "sums", "rowids"], numericColumns: [1, 2, 3])
    var empty = 0
    for entry in tables {
      if entry.rows == 0, !TextStyle.current.showsZeros {
        empty += 1
        continue
      }
      let keys = entry.groups.reduce(KeyRanges()) { $0.union($1.keys ?? KeyRanges()) }
      table.append([
        printable(entry.name), grouped(entry.rows), grouped(entry.pages), entry.sums > 0 ? grouped(entry.sums) : "–",
        keys.words(limit: 4),
      ])
    }
    return lines + table.text() + TextTable.note(empty, "tables without rows")
  }
}
