internal import Lazaret
internal import ManagedObjectModel
import PersistentStore
internal import Platform
internal import SQLiteFormat
import Salvage
internal import SystemPackage

/// The files common to bundles of every level.
struct ExportTexts {
  private let shared: [BundleItem]
  private let facts: [BundleLevel: BundleItem]
  private let readme: (BundleLevel, _ staying: String) -> BundleItem

  private let receipts: [BundleLevel: [BundleItem]]

  init(
    _ work: ExportWork, _ evidence: ExportEvidence, _ analysis: ExportAnalysis, _ receipt: Receipt?,
    _ reduction: PathReduction, date: Timestamp, _ log: inout OpeningLog
  ) throws {
    let fileSystem = work.fileSystem
    var items: [BundleItem] = []
    func add(_ name: String, _ bytes: [UInt8], _ words: String) {
      items.append(BundleItem(name, .bytes(bytes), words: words))
    }
    add("salvage.json", try analysis.salvage(reduction), "what can be recovered, what not, and the likely causes")
    let examination = JSON.Object(analysis.examination, ["path": PathText(FilePath(work.source.name))])
    add(
      "examination.json", try reduction.json(examination, without: ["storeUUID"]),
      "what was found in the store's header, pages and metadata")
    if let states = analysis.report?.pages {
      let map = try PageMapFile(states, pages: analysis.pages) { !work.progress(.analysing, 1, 1) }
      add("page-map.json", map.text, "the state of every page")
    }
    if evidence.hasMain {
      add(
        "schema.sql", try SchemaListing(of: evidence.files, in: fileSystem).text,
        "the statements of the schema: tables, indexes, views, triggers")
    }
    items += ModelFiles.items(given: work.options.model, found: analysis.examination, &log)
    let system = SystemFacts(
      store: work.source.originalPath.folder, appVersion: work.options.appVersion, in: fileSystem)
    add("system.json", try JSON.bytes(of: system, to: "export the store"), "the system that it is on")
    let text = RowNumbers.removed(from: reduction.reduced(String(decoding: log.text, as: UTF8.self)))
    add("log.txt", Array(text.utf8), "the log of looking at the store and of opening a copy of it")
    shared = items

    var receipts: [BundleLevel: [BundleItem]] = [:]
    if let receipt {
      let shared = try Self.receipt(SharedReceipt(receipt), reduction)
      for level in BundleLevel.allCases {
        receipts[level] = level == .full ? try Self.receipt(whole: receipt.withoutOwnersWords, reduction) : shared
      }
    }
    self.receipts = receipts
    let (hasMain, stored, name) = (evidence.hasMain, "store/\(work.bundledName)", printable(work.source.name))
    let path = { (level: BundleLevel) in hasMain && (level == .scrubbed || level == .full) ? stored : nil }
    var facts: [BundleLevel: BundleItem] = [:]
    for level in BundleLevel.allCases {
      let path = path(level)
      let value = Self.facts(work, evidence, analysis, level, date: date, storePath: path)
      facts[level] = BundleItem(
        BundleFacts.name, .bytes(try JSON.bytes(of: value, to: "export the store")),
        words: "what was found, in numbers and words")
    }
    self.facts = facts
    readme = { level, staying in
      BundleItem(
        "README.txt", .bytes(BundleReadme.text(level, name: name, storePath: path(level), staying: staying)),
        words: "what the bundle is and how to look at it")
    }
  }

  /// - Parameter staying: the description of unreplaced values.
  func items(_ level: BundleLevel, staying: String = "") -> [BundleItem] {
    shared + (receipts[level] ?? []) + [facts[level]].compactMap(\.self) + [readme(level, staying)]
  }

  private static func receipt(_ receipt: SharedReceipt, _ reduction: PathReduction) throws -> [BundleItem] {
    [
      BundleItem(
        "receipt.json", .bytes(try reduction.json(receipt)),
        words: "the receipt of the quarantine in numbers and codes, without the names and sums of files"),
      BundleItem(
        "timeline.json", .bytes(try reduction.json(receipt.timeline)), words: "what happened to the store, and when"),
    ]
  }

  private static func receipt(whole receipt: Receipt, _ reduction: PathReduction) throws -> [BundleItem] {
    [
      BundleItem(
        "receipt.json", .bytes(try reduction.json(receipt)),
        words: "the receipt of the quarantine, without the names of folders"),
      BundleItem(
        "timeline.json", .bytes(try reduction.json(receipt.history)), words: "what happened to the store, and when"),
    ]
  }

  private static func facts(
    _ work: ExportWork, _ evidence: ExportEvidence, _ analysis: ExportAnalysis, _ level: BundleLevel, date: Timestamp,
    storePath: String?
  ) -> BundleFacts {
    let (examination, pages) = (analysis.examination, analysis.report?.pages)
    let receipt = work.source.receipt
    let hashes = examination.metadata?.versionHashes ?? [:]
    var damaged = Set<String>()
    for run in pages?.runs ?? [] where run.state == .damaged || run.state == .unreadable {
      if let owner = run.owner, let pages { damaged.insert(pages.owners[owner].table) }
    }
    // Only the content of a lost page shows its owner.
    for entity in analysis.report?.entities ?? [] where entity.hasLosses { damaged.insert(entity.table) }
    let versions = SoftwareVersions(examination, app: work.options.appVersion ?? receipt?.versions.app)
    return BundleFacts(
      level: level, date: date, app: work.options.app, store: work.source.name,
      // The name contains the quarantine time, which is close to the store's newest date.
      quarantineID: level == .scrubbed ? receipt?.lineage?.generation : work.source.quarantineID,
      verdict: examination.verdict.rawValue,
      reason: receipt?.reason.code ?? examination.reason.code, cause: analysis.report?.causes.first?.code.rawValue,
      pageStates: Dictionary(uniqueKeysWithValues: (pages?.counts ?? [:]).map { ($0.key.rawValue, Int64($0.value)) }),
      damagedTables: damaged.sorted(), pageSize: pages?.pageSize ?? examination.health.pageSize,
      bytes: evidence.allBytes, modelVersion: examination.modelVersion ?? receipt?.model?.version,
      modelChecksum: hashes.isEmpty ? receipt?.model?.checksum : ManagedObjectModel.versionChecksum(of: hashes),
      versions: versions, storePath: storePath)
  }
}

extension Receipt {
  /// The receipt without the user's own words.
  fileprivate var withoutOwnersWords: Receipt {
    guard reason.code == "by-request" else { return self }
    var receipt = self
    let written = reason.words
    receipt.reason.words = "It was asked for."
    receipt.timeline = history.map { moment in
      var moment = moment
      if moment.words == written { moment.words = receipt.reason.words }
      return moment
    }
    return receipt
  }
}

/// The readable statements of a store's schema: `data/schema.sql`.
struct SchemaListing {
  let text: [UInt8]

  let isReadable: Bool

  /// Reads the schema with our own page reader; the text notes faults.
  init(of files: StoreFileSet, in fileSystem: FileSystem) throws {
    var lines = ["-- The statements of the store's schema, as far as they could be read. It holds no records."]
    var count = 0
    do {
      let database = try Database.withOwnParts(
        main: fileSystem.open(files.main), writeAheadLog: Self.part(.wal, of: files, in: fileSystem),
        rollbackJournal: Self.part(.journal, of: files, in: fileSystem))
      let schema = try database.schema()
      for entry in schema.entries {
        guard let sql = entry.sql else {
          lines.append(
            "-- \(entry.kind.rawValue) \(printable(entry.name)) has no statement; its root is page \(entry.rootPage)")
          continue
        }
        // A misplaced record page would contain user text.
        guard Self.isStatement(sql) else {
          lines.append("-- an entry that is no statement was left out")
          continue
        }
        count += 1
        lines.append("-- root page \(entry.rootPage)")
        lines.append(sql + ";")
      }
      let wrong = schema.findings.counts.reduce(0) { $0 + $1.value }
      if wrong > 0 { lines.append("-- \(wrong) entries or pages of the schema are damaged") }
    } catch let error as FormatError {
      if let fileError = error.fileError { throw fileError }
      lines.append("-- The schema could not be read: \(error.detail).")
    }
    isReadable = count > 0
    text = Array((lines.joined(separator: "\n") + "\n").utf8)
  }

  private static func part(
    _ part: StoreFileSet.Part, of files: StoreFileSet, in fileSystem: FileSystem
  ) throws(FileError) -> (any ByteSource)? {
    guard try fileSystem.status(of: files.path(of: part)) != nil else { return nil }
    return try fileSystem.open(files.path(of: part))
  }

  private static func isStatement(_ sql: String) -> Bool {
    let start = sql.prefix(40).uppercased()
    guard start.hasPrefix("CREATE ") else { return false }
    return ["TABLE", "INDEX", "VIEW", "TRIGGER"].contains { start.contains($0) }
  }
}

/// The page map, `data/page-map.json`: runs with state, table and page type.
struct PageMapFile {
  let text: [UInt8]

  private struct Run {
    var first: UInt32
    var last: UInt32
    var state: PageStates.State
    var owner: Int?
    var type: String
  }

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

/// The models of a store, compiled and as JSON: `data/model/…`.
enum ModelFiles {
  static func items(given: AppModel?, found examination: Examination, _ log: inout OpeningLog) -> [BundleItem] {
    var items: [BundleItem] = []
    switch given {
    case .coreData(let bundle): items += self.items(of: bundle, in: "model/given", "the model that the app has", &log)
    case .sqlite(let script, let name):
      items.append(
        BundleItem(
          "model/given/\(plain(name)).sql", .bytes(Array(script.text.utf8)), words: "the schema that the app expects"))
    case nil: break
    }
    if let model = examination.storeModel {
      let version = ModelVersion(name: examination.modelVersion ?? "Store", model: model, isCurrent: true)
      if let bundle = ModelBundle(name: "Store", versions: [version]) {
        items += self.items(of: bundle, in: "model/store", "the model that the store was written with", &log)
      }
    }
    return items
  }

  private static func items(
    of bundle: ModelBundle, in folder: String, _ words: String, _ log: inout OpeningLog
  ) -> [BundleItem] {
    var items: [BundleItem] = []
    var names = Set<String>()
    for version in bundle.versions {
      var name = plain(version.name)
      while !names.insert(name.lowercased()).inserted { name += "_" }
      do throws(ModelError) {
        let bytes = try version.model.compiledBytes()
        items.append(BundleItem("\(folder)/\(name).mom", .bytes(bytes), words: words + ", compiled"))
      } catch {
        log.add("info", "model", "version \(version.name) cannot be compiled: \(error.detail)")
      }
    }
    do throws(FileError) {
      let bytes = try JSON.bytes(of: bundle.payload(), to: "export the model")
      items.append(BundleItem("\(folder)/model.json", .bytes(bytes), words: words))
    } catch {
      // Only default values that are not finite numbers lead here.
      log.add("info", "model", "the model has values that JSON has no word for")
    }
    return items
  }

  /// Keeps characters that are portable in file names.
  static func plain(_ text: String) -> String {
    let name = String(
      text.unicodeScalars.prefix(60).map { scalar in
        scalar.isASCII && (scalar.properties.isAlphabetic || "0123456789._-".unicodeScalars.contains(scalar))
          ? Character(scalar) : "_"
      })
    return name.isEmpty || name.hasPrefix(".") || name.hasSuffix(".") ? "_\(name)_" : name
  }
}
