import ManagedObjectModel
internal import PersistentStore
import Platform
internal import SQLiteFormat

extension FuzzTarget {
  /// Good inputs, made here and now by SQLite and by the writers of this project.
  package func seeds() throws -> [FuzzSeed] {
    switch self {
    case .page: return try SeedStores.pages()
    case .record: return try Self.records()
    case .schema: return Self.statements.enumerated().map { FuzzSeed("statement-\($0.offset)", $0.element) }
    case .database:
      return try SeedStores.plain()
        + [
          FuzzSeed("log", try SeedStores.logged().joined), FuzzSeed("journal", try SeedStores.journalled().joined),
        ]
    case .log: return [FuzzSeed("log", try SeedStores.logged().log ?? [])]
    case .journal: return [FuzzSeed("journal", try SeedStores.journalled().journal ?? [])]
    case .propertyList:
      return [
        FuzzSeed("binary", try SeedModels.list.binaryBytes()), FuzzSeed("xml", SeedModels.xmlList),
        FuzzSeed("model", try SeedModels.garage.compiledBytes()),
      ]
    case .archive: return try SeedModels.archivedPredicates()
    case .xml: return [FuzzSeed("list", SeedModels.xmlList), FuzzSeed("model", SeedModels.source)]
    case .predicate: return SeedModels.predicates.enumerated().map { FuzzSeed("format-\($0.offset)", $0.element) }
    case .modelSource: return [FuzzSeed("V1", SeedModels.source), FuzzSeed("V2", SeedModels.changedSource)]
    case .compiledModel:
      return [
        FuzzSeed("archive", try SeedModels.garage.compiledBytes()),
        FuzzSeed("cache", try SeedModels.garage.modelCache()),
      ]
    case .modelArchive: return (0..<8).map { FuzzSeed("edits-\($0)", (0..<12).map { UInt8($0 * 29 & 0xFF) }) }
    case .editorModel: return [FuzzSeed("archive", try SeedModels.garage.compiledBytes())]
    case .mappingModel:
      return [FuzzSeed("compiled", try SeedMappings.compiled()), FuzzSeed("source", try SeedMappings.source())]
    case .mappingFile: return [FuzzSeed("garage", SeedModels.mapping)]
    case .metadata:
      let metadata = StoreMetadata(model: try SeedModels.garage, uuid: "9B4D2E4A-0000-0000-0000-000000000000")
      return [FuzzSeed("metadata", try metadata.propertyListBytes())]
    case .receipt: return [FuzzSeed("receipt", SeedModels.receipt)]
    case .recoveryKit: return [FuzzSeed("kit", try SeedStores.recoveryKit())]
    case .request: return RequestReading.seeds
    case .tar, .bag: return try ArchiveReading.seeds()
    case .age: return try AgeReading.files()
    case .ageArmor: return try AgeReading.armors()
    case .ageHeader: return try AgeReading.headers()
    case .agePayload:
      return [FuzzSeed("short", "some text"), FuzzSeed("two-chunks", [UInt8](repeating: 5, count: 70_000))]
    case .upload: return UploadReading.seeds
    case .examination, .salvage, .scrub: return try SeedStores.coreData() + Self.database.seeds()
    case .rebuild: return try SeedStores.coreData()
    }
  }

  /// The records of the cells of all leaves.
  private static func records() throws -> [FuzzSeed] {
    var seeds: [FuzzSeed] = []
    for seed in try SeedStores.pages() {
      guard let page = BTreePage(seed.bytes, number: 3, geometry: PayloadGeometry(usableSize: seed.bytes.count)),
        page.kind.isLeaf
      else { continue }
      for index in 0..<min(4, page.cellCount) {
        guard let cell = page.cell(at: index), let record = page.localRecord(of: cell, encoding: .utf8) else {
          continue
        }
        seeds.append(FuzzSeed("\(seed.name)-\(index)", Array(record.payload)))
      }
    }
    return seeds
  }

  private static let statements = [
    "CREATE TABLE t(k INTEGER PRIMARY KEY AUTOINCREMENT, a, b TEXT COLLATE NOCASE DEFAULT 'x''y' NOT NULL, c REAL)",
    "CREATE TABLE \"a b\"([x] VARCHAR(10, 2), `y` DEFAULT (1 + 2), z AS (x || y) STORED) STRICT, WITHOUT ROWID",
    "CREATE TABLE t(a, b, c, PRIMARY KEY (a DESC, b), UNIQUE (c) ON CONFLICT IGNORE, CHECK (a > 0), "
      + "FOREIGN KEY (b) REFERENCES u(x) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED) WITHOUT ROWID",
    "CREATE UNIQUE INDEX main.i ON t(a COLLATE RTRIM DESC, lower(b)) WHERE c IS NOT NULL AND d <> x'00ff'",
    "CREATE TEMP TABLE t -- comment\n (a /* other */, b DEFAULT -1.5e3, c DEFAULT +0x7f, d DEFAULT CURRENT_TIME)",
    "CREATE VIRTUAL TABLE r USING rtree(a, b, c)", "CREATE TABLE t AS SELECT 1", "CREATE TABLE t(\u{e9} \u{1F6A2})",
  ]
}
