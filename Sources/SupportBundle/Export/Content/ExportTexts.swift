internal import Foundation
internal import Lazaret
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import Salvage
internal import SystemPackage

/// The files common to bundles of every level.
struct ExportTexts {
  private let shared: [BundleItem]
  private let own: [BundleLevel: [BundleItem]]
  private let readme: (BundleLevel, _ staying: String) -> BundleItem

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
    let system = SystemFacts.facts(
      store: work.source.originalPath.folder, appVersion: work.options.appVersion, in: fileSystem)
    add("system.json", try JSON.bytes(of: system, to: "export the store"), "the system that it is on")
    let text = reduction.numbers.removed(from: reduction.reduced(String(decoding: log.text, as: UTF8.self)))
    add("log.txt", Array(text.utf8), "the log of looking at the store and of opening a copy of it")
    shared = items

    let receipts = try receipt.map { receipt in
      let (part, whole) = (SharedReceipt(receipt: receipt), receipt.withoutOwnersWords)
      return (
        part: try Self.receipt(
          part, part.timeline,
          "the receipt of the quarantine in numbers and codes, without the names and sums of files", reduction),
        whole: try Self.receipt(
          whole, whole.history, "the receipt of the quarantine, without the names of folders", reduction)
      )
    }
    let (hasMain, stored, name) = (evidence.hasMain, "store/\(work.bundledName)", printable(work.source.name))
    let path = { (level: BundleLevel) in hasMain && (level == .scrubbed || level == .full) ? stored : nil }
    var own: [BundleLevel: [BundleItem]] = [:]
    for level in BundleLevel.allCases {
      let value = Self.facts(work, evidence, analysis, level, date: date, storePath: path(level))
      let facts = BundleItem(
        BundleFacts.name, .bytes(try JSON.bytes(of: value, to: "export the store")),
        words: "what was found, in numbers and words")
      own[level] = ((level == .full ? receipts?.whole : receipts?.part) ?? []) + [facts]
    }
    self.own = own
    readme = { level, staying in
      BundleItem(
        "README.txt", .bytes(BundleReadme.text(level, name: name, storePath: path(level), staying: staying)),
        words: "what the bundle is and how to look at it")
    }
  }

  /// - Parameter staying: the description of unreplaced values.
  func items(_ level: BundleLevel, staying: String = "") -> [BundleItem] {
    shared + (own[level] ?? []) + [readme(level, staying)]
  }

  private static func receipt(
    _ receipt: some Encodable, _ timeline: some Encodable, _ words: String, _ reduction: PathReduction
  ) throws -> [BundleItem] {
    [
      BundleItem("receipt.json", .bytes(try reduction.json(receipt)), words: words),
      BundleItem("timeline.json", .bytes(try reduction.json(timeline)), words: "what happened to the store, and when"),
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

  /// Reads the schema with our own page reader; the text notes faults.
  init(of files: StoreFileSet, in fileSystem: FileSystem) throws {
    var lines = ["-- The statements of the store's schema, as far as they could be read. It holds no records."]
    do throws(FileError) {
      let database = try Database.withOwnParts(
        main: fileSystem.open(files.main), writeAheadLog: files.open(.wal, in: fileSystem),
        rollbackJournal: files.open(.journal, in: fileSystem))
      let schema = try database.schema()
      for entry in schema.entries {
        if let sql = entry.sql {
          // A misplaced record page would contain user text.
          lines +=
            Self.isStatement(sql)
            ? ["-- root page \(entry.rootPage)", sql + ";"] : ["-- an entry that is no statement was left out"]
        } else {
          lines.append(
            "-- \(entry.kind.rawValue) \(printable(entry.name)) has no statement; its root is page \(entry.rootPage)")
        }
      }
      let wrong = schema.findings.counts.reduce(0) { $0 + $1.value }
      if wrong > 0 { lines.append("-- \(wrong) entries or pages of the schema are damaged") }
    } catch {
      guard error.kind == .notADatabase else { throw error }
      lines.append("-- The schema could not be read: \(error.detail).")
    }
    text = Array((lines.joined(separator: "\n") + "\n").utf8)
  }

  private static func isStatement(_ sql: String) -> Bool {
    let start = sql.prefix(40).uppercased()
    guard start.hasPrefix("CREATE ") else { return false }
    return ["TABLE", "INDEX", "VIEW", "TRIGGER"].contains { start.contains($0) }
  }
}

extension StoreFileSet {
  /// Opens a part; nil if missing.
  func open(_ part: Part, in fileSystem: FileSystem) throws(FileError) -> (any ByteSource)? {
    try fileSystem.status(of: path(of: part)) == nil ? nil : fileSystem.open(path(of: part))
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
      } catch { log.add("info", "model", "version \(version.name) cannot be compiled: \(error.detail)") }
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

  static func plain(_ text: String) -> String {
    let name = BundleWriter.portable(text)
    return name.isEmpty || name.hasPrefix(".") || name.hasSuffix(".") ? "_\(name)_" : name
  }
}

/// The explanation in every bundle: `data/README.txt`.
enum BundleReadme {
  static func text(_ level: BundleLevel, name: String, storePath: String?, staying: String) -> [UInt8] {
    let store = storePath ?? ""
    let content =
      switch level {
      case .facts: "There is nothing of the store's records in it."
      case .damagedPages:
        """
        pages/pages.bin holds the damaged pages of the store and those of its schema, as they are, one behind the other;
        pages/index.json tells of each range of it which pages it is, from which file and offset, and why it is there.
        They can hold records of the store's owner. Treat them as such.
        """
      case .scrubbed:
        """
        \(staying)

        \(store) is the store, page for page and with the same damage, with meaningless values of the same length and
        kind in the place of its own. scrub.json says what was replaced, what stays and why, and what could not be
        understood and was overwritten. What fails on the original fails alike on it.
        """
      case .full:
        """
        \(store) is the store as it is, byte for byte, with all records of its owner, and its companions
        beside it. Treat it as such: keep it encrypted, and delete it when it is no longer needed.
        """
      }
    let look =
      storePath.map { path in
        """

          lazaret inspect data/\(path)
          lazaret salvage data/\(path) -o Rescued.sqlite
          lazaret serve
        """
      } ?? ""
    return Array(
      """
      What this is
      ============

      A support bundle about the store "\(name)", made by Lazaret for finding out why the store did not open or lost
      records. Its level is "\(level.rawValue)": \(level.words).

      \(content)

      facts.json         what was found, in numbers and words
      examination.json   every note of the examination, as lazaret inspect prints it as JSON
      salvage.json       what can be recovered and what not, and the likely causes
      page-map.json      what every page is: state, table, kind
      schema.sql         the statements of the schema, as far as they could be read
      model/             the models of the app and of the store, compiled and as JSON
      receipt.json       the receipt of the quarantine, where the store is in one
      timeline.json      what happened to the store, and when
      log.txt            the log of looking at the store and of opening a copy of it
      system.json        the system that it was on

      How to look at it
      =================

      A bundle whose name ends in .age is encrypted. The holder of the secret key opens it with

        age -d -i KEY -o BUNDLE.tar.gz BUNDLE.tar.gz.age

      or lets Lazaret do all of it, decrypting, unpacking safely and checking every sum:

        lazaret bundle unpack BUNDLE -o FOLDER

      By hand:

        tar -xzf BUNDLE.tar.gz
        cd the-folder-that-it-made
        sha256sum -c manifest-sha256.txt tagmanifest-sha256.txt
      \(look)

      """.utf8)
  }
}

/// The system, `data/system.json`, without names of users, machines or folders.
enum SystemFacts {
  static func facts(store folder: FilePath, appVersion: String?, in fileSystem: FileSystem) -> JSON.Object {
    let process = ProcessInfo.processInfo
    #if arch(x86_64)
      let architecture = "x86_64"
    #elseif arch(arm64)
      let architecture = "arm64"
    #else
      let architecture = "other"
    #endif
    return [
      "formatVersion": 1, "operatingSystem": LibraryVersion.operatingSystem, "kernel": kernelRelease,
      "architecture": architecture, "processors": process.processorCount, "memoryBytes": process.physicalMemory,
      "freeBytes": try? fileSystem.freeSpace(at: folder), "sqlite": SQLiteLibrary.version,
      "library": LibraryVersion.current, "appVersion": appVersion,
    ]
  }

  private static var kernelRelease: String {
    var name = utsname()
    guard unsafe uname(&name) == 0 else { return "unknown" }
    return unsafe withUnsafeBytes(of: &name.release) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
  }
}

extension SoftwareVersions {
  init(_ examination: Examination, app: String?) {
    self.init(
      app: app.map { printable($0) }, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
      storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem)
  }
}
