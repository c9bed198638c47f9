import ArgumentParser
import Lazaret
import Platform
import Salvage
import SystemPackage

struct KitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "kit", abstract: "Makes and shows recovery kits: what a salvage would want to know of a healthy store.",
    discussion: """
      A kit has the store's tables with their pages and rowids, and a sum of each page of stores up to 64 MB. With it a \
      salvage tells exactly which records are lost, finds pages without any other trace and sees flipped bits inside of \
      values. It holds none of the records' values. A coordinator that has a home notes one a day by itself.
      """, subcommands: [KitCreateCommand.self, KitShowCommand.self])
}

struct KitCreateCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "create", abstract: "Notes a recovery kit of a healthy store.",
    usage: "lazaret kit create <store> -o <out> [--json]",
    discussion: "Touches nothing of the store. Of a damaged store no kit is made.",
    examples: "lazaret kit create Stores/App.sqlite -o App.kit")

  @Argument(help: "The store's main file.") var store: PathArgument

  @Option(name: [.customShort("o"), .customLong("output")], help: "The kit's file; nothing may have its name.")
  var out: PathArgument

  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func validate() throws { try out.requirePlace() }

  func perform() throws {
    let line = ProgressLine()
    line.show("Reading the store …")
    var kit = try RecoveryKit(of: store.path)
    kit.generation = try EvidenceScope(of: store.path).lineage?.generation
    let bytes = try kit.bytes()
    try FileSystem().writeAtomically(bytes, to: out.path, replacing: false, permissions: .ownerReadWrite)
    line.clear()
    let summary = KitSummary(kit: kit, path: out.path, size: bytes.count)
    try output.print(summary.payload, summary.text)
  }
}

struct KitShowCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "show", abstract: "Shows what is in a recovery kit.", usage: "lazaret kit show <kit> [--json]",
    examples: "lazaret kit show App.kit")

  @Argument(help: "The kit's file.") var kit: PathArgument

  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let file = try FileSystem().open(kit.path)
    let summary = KitSummary(
      kit: try RecoveryKit(contentsOf: kit.path), path: kit.path, size: Int(clamping: file.count))
    try output.print(summary.payload, summary.text)
  }
}

struct TableOptions: ParsableArguments {
  @Flag(help: "Show the rows of entities and tables without records too.") var all = false

  func validate() {
    guard all else { return }
    TextStyle.change { $0.showsZeros = true }
  }
}

struct KitSummary {
  private static let maximumRanges = 1000

  let kit: RecoveryKit
  let path: FilePath
  let size: Int

  private static func keys(_ group: RecoveryKit.Group) -> KeyRanges? { group.keys?.prefix(ranges: maximumRanges) }

  var payload: JSON.Object {
    let tables = kit.tables.map { table -> JSON.Object in
      let groups = table.groups.map { group -> JSON.Object in
        ["entity": group.entity, "rows": group.rows, "keys": Self.keys(group)]
      }
      return [
        "name": table.name, "root": table.root, "rows": table.rows, "pages": table.leaves.count,
        "sums": table.sums.count, "groups": groups,
      ]
    }
    return [
      "kit": PathText(path), "size": size, "date": kit.date.rfc3339, "storeUUID": kit.storeUUID,
      "generation": kit.generation, "pageSize": kit.file.pageSize, "pageCount": kit.file.pageCount, "rows": kit.rows,
      "tables": tables,
    ]
  }

  var text: String {
    var lines = "\(printable(path.string)): a recovery kit of \(kit.date.rfc3339), \(readableSize(Int64(size)))\n"
    if let storeUUID = kit.storeUUID { lines += "  Store \(printable(storeUUID))\n" }
    if let generation = kit.generation { lines += "  Generation \(printable(generation))\n" }
    lines += "  \(counted(kit.file.pageCount, "page")) of \(grouped(kit.file.pageSize)) bytes, "
    lines += "\(counted(kit.rows, "row"))\n\n"
    var table = TextTable(["", "rows", "pages", "sums", "rowids"], numericColumns: [1, 2, 3])
    var empty = 0
    for entry in kit.tables {
      if entry.rows == 0, !TextStyle.current.showsZeros {
        empty += 1
        continue
      }
      let keys = entry.groups.reduce(KeyRanges()) { $0.union(Self.keys($1) ?? KeyRanges()) }
      table.append(
        printable(entry.name), grouped(entry.rows), grouped(entry.leaves.count),
        entry.sums.isEmpty ? "–" : grouped(entry.sums.count), keys.words(limit: 4))
    }
    return lines + table.text() + TextTable.note(empty, "tables without rows")
  }
}
