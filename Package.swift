// swift-tools-version: 6.2
import PackageDescription

/// Warnings stop the build on continuous integration, and only there: a newer compiler must not break a user's build.
let isContinuousIntegration = Context.environment["CI"] != nil

/// Whether the modules are instrumented for libFuzzer and the fuzzer is built: only by `Scripts/fuzz`, in a folder of its own.
let isFuzzing = Context.environment["LAZARET_FUZZ"] != nil

/// The folder of the toolchain's own swift-syntax, where that is to be used in the place of the package.
///
/// Only on continuous integration: the package takes six minutes of a processor to compile. What is released is built with it.
let toolchainSyntax = Context.environment["LAZARET_TOOLCHAIN_SYNTAX"]

let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (isContinuousIntegration ? [.treatAllWarnings(as: .error)] : [])
  + (isFuzzing ? [.unsafeFlags(["-sanitize=fuzzer"])] : [])
  + (toolchainSyntax.map { [.unsafeFlags(["-I", $0])] } ?? [])

let systemPackage = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let grdbSQLite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
/// Resolved only where the command line is asked for, as it is unless a package says `traits: []`.
let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser", condition: .when(traits: ["CommandLine"]))
/// Elsewhere zlib packs; see `Archives/ZlibDeflate.swift`.
let deflate = Target.Dependency.target(
  name: "CDeflate", condition: .when(platforms: [.linux], traits: ["Libdeflate"]))
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

/// What reads Swift sources; resolved only where the trait `SwiftSources` is asked for, so that no app's build has it without need.
let swiftSyntax: [Target.Dependency] =
  toolchainSyntax == nil
  ? ["SwiftSyntax", "SwiftParser"].map {
    .product(name: $0, package: "swift-syntax", condition: .when(traits: ["SwiftSources"]))
  } : []

/// Links the toolchain's own instead.
let swiftSyntaxLinking: [LinkerSetting] =
  toolchainSyntax.map {
    [
      .unsafeFlags(
        ["-L", $0, "-lSwiftSyntax", "-lSwiftParser", "-Xlinker", "-rpath", "-Xlinker", $0],
        .when(traits: ["SwiftSources"]))
    ]
  } ?? []

/// The floors of the house, from the ground up, each a folder of `Sources/`.
enum Floor: String {
  case files, stores, recovery, library, programs

  func path(of module: String) -> String {
    "Sources/\(rawValue.prefix(1).uppercased())\(rawValue.dropFirst())/\(module)"
  }
}

/// A module; they are listed from the ground up, and each may only name modules above it in the list.
func module(
  _ name: String, on floor: Floor, knows dependencies: [Target.Dependency], linking: [LinkerSetting] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: floor.path(of: name), swiftSettings: settings, linkerSettings: linking
  )
}

/// The header of a C library of the system.
func library(_ name: String, apt: String, brew: String) -> Target {
  .systemLibrary(name: name, path: "Sources/CLibraries/\(name)", providers: [.apt([apt]), .brew([brew])])
}

/// What tests try is optimised, as users have it; they themselves need not be, and compile in half the time.
let testSettings = settings + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// - Parameter searches: whether the tests themselves look through so much that they are optimised too.
func tests(
  of name: String, needs dependencies: [Target.Dependency] = [], leavingOut excluded: [String] = [],
  searches: Bool = false
) -> Target {
  .testTarget(
    name: "\(name)Tests",
    dependencies: [.target(name: name), "TestSupport", systemPackage] + dependencies,
    exclude: excluded,
    swiftSettings: searches ? settings : testSettings)
}

/// The fuzzer; it can only be linked where libFuzzer is.
let fuzzer: [Target] =
  isFuzzing
  ? [
    .executableTarget(
      name: "lazaret-fuzz", dependencies: ["FuzzTargets", "StoreFiles", systemPackage], path: "Fuzz/Driver",
      swiftSettings: settings, linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
  ] : []

let package = Package(
  name: "Lazaret",
  platforms: [.iOS(.v16), .macOS(.v13), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
  products: [
    // What an app imports; of the library's own modules it shows `Lazaret` alone.
    .library(name: "Lazaret", targets: ["Lazaret"]),
    // Opening a database with GRDB through it.
    .library(name: "LazaretGRDB", targets: ["LazaretGRDB"]),
    // Bundles of a broken store for support, beside it.
    .library(name: "LazaretSupport", targets: ["LazaretSupport"]),
    // Custom steps of migrations in Swift, beside it.
    .library(name: "LazaretMigration", targets: ["Migration", "ModelReview"]),
    // Bundles on their way to support, for apps that send them themselves.
    .library(name: "LazaretSending", targets: ["Sending"]),
    .library(name: "LazaretTesting", targets: ["LazaretTesting"]),
    .library(name: "SwiftModelSources", targets: ["SwiftModelSources"]),
    .executable(name: "lazaret", targets: ["LazaretTool"]),
    .plugin(name: "CheckModels", targets: ["CheckModels"]),
  ],
  traits: [
    .default(enabledTraits: ["CommandLine", "Libdeflate"]),
    .trait(
      name: "CommandLine",
      description: "The command line, the inspector's pages and the inbox; no part of the app library."),
    .trait(
      name: "Libdeflate", description: "Packs with libdeflate where the system has it, twice as fast as with zlib."),
    .trait(
      name: "SwiftSources", description: "Reads SwiftData's models from Swift sources, with swift-syntax.",
      enabledTraits: ["CommandLine", "Libdeflate"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
  ],
  targets: [
    library("CZlib", apt: "zlib1g-dev", brew: "zlib"),
    library("CMicrohttpd", apt: "libmicrohttpd-dev", brew: "libmicrohttpd"),
    library("CCurl", apt: "libcurl4-openssl-dev", brew: "curl"),
    library("CDeflate", apt: "libdeflate-dev", brew: "libdeflate"),
    library("CZstd", apt: "libzstd-dev", brew: "zstd"),
    .systemLibrary(name: "CLinux", path: "Sources/CLibraries/CLinux"),
    library("CSQLite", apt: "libsqlite3-dev", brew: "sqlite"),
    library("COpenSSL", apt: "libssl-dev", brew: "openssl@3"),
    module("Compatibility", on: .files, knows: []),
    // Apple's systems have CryptoKit.
    module(
      "Cryptography", on: .files, knows: [.target(name: "COpenSSL", condition: .when(platforms: [.linux]))]),
    module("Failures", on: .files, knows: [systemPackage]),
    module("HTTPServer", on: .files, knows: ["Compatibility", "CMicrohttpd", "Failures"]),
    module("StoreFiles", on: .files, knows: ["Compatibility", "CLinux", "Failures", systemPackage, "Cryptography"]),
    module("TusProtocol", on: .files, knows: ["Compatibility", "StoreFiles"]),
    module(
      "ObjectStorage", on: .files,
      knows: [
        "Compatibility", "CCurl", "Failures", "Sending", "StoreFiles", "TusProtocol", systemPackage, "Cryptography",
      ]),
    module("AgeEncryption", on: .files, knows: ["Failures", "Cryptography"]),
    module("Archives", on: .files, knows: ["Compatibility", "CZlib", deflate, "Failures"]),
    module("PropertyLists", on: .files, knows: ["Compatibility", "StoreFiles"]),
    module("SQLiteFormat", on: .files, knows: ["Compatibility", "StoreFiles"]),
    module(
      "ManagedObjectModel", on: .stores, knows: ["CZlib", "StoreFiles", "PropertyLists", "Cryptography", systemPackage]),
    // No part of the app library, as the other modules of which this is said: what only people and programs ask for.
    module(
      "ModelPresentation", on: .stores, knows: ["StoreFiles", "ManagedObjectModel", systemPackage]),
    module(
      "SwiftModelSources", on: .stores,
      knows: ["StoreFiles", "ManagedObjectModel", "ModelPresentation", systemPackage] + swiftSyntax,
      linking: swiftSyntaxLinking),
    module(
      "PersistentStore", on: .stores,
      knows: [
        "Compatibility", "CSQLite", "StoreFiles", "PropertyLists", "ManagedObjectModel", grdb, grdbSQLite,
        systemPackage,
      ]),
    // No part of the app library.
    module(
      "StoreRecords", on: .stores,
      knows: ["StoreFiles", "ManagedObjectModel", "PersistentStore", grdb]),
    module(
      "Examination", on: .stores,
      knows: ["StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", systemPackage]),
    module(
      "Migration", on: .recovery,
      knows: [
        "Compatibility", "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb,
        systemPackage,
        logging,
      ]),
    // No part of the app library.
    module("ModelReview", on: .recovery, knows: ["StoreFiles", "ManagedObjectModel", "Migration", systemPackage]),
    module(
      "LazaretTesting", on: .recovery,
      knows: [
        "Compatibility", "StoreFiles", "PropertyLists", "ManagedObjectModel", "PersistentStore", "StoreRecords",
        "Migration", grdb, systemPackage,
      ]),
    module(
      "RecoveryKit", on: .recovery,
      knows: [
        "Compatibility", "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb,
        grdbSQLite,
        systemPackage,
      ]),
    module(
      "PageRecovery", on: .recovery,
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "RecoveryKit", grdb,
        grdbSQLite, systemPackage,
      ]),
    module(
      "Salvage", on: .recovery,
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration",
        "RecoveryKit",
        "PageRecovery", grdb, systemPackage,
      ]),
    module(
      "Backup", on: .recovery,
      knows: [
        "Compatibility", "AgeEncryption", "Archives", "Cryptography", "StoreFiles", "SQLiteFormat",
        "ManagedObjectModel", "PersistentStore", "Examination", "RecoveryKit", systemPackage,
      ]),
    module(
      "BackupRestore", on: .recovery,
      knows: [
        "Archives", "Backup", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore",
        "Examination", "Migration", "Salvage", "RecoveryKit", grdb, systemPackage,
      ]),
    // No part of the app library.
    module(
      "EntityRestore", on: .recovery,
      knows: [
        "Compatibility", "Backup", "BackupRestore", "StoreFiles", "SQLiteFormat", "ManagedObjectModel",
        "PersistentStore", grdb, systemPackage,
      ]),
    module("Zstandard", on: .recovery, knows: ["CZstd", "Backup"]),
    module(
      "ObjectStorageBackup", on: .recovery,
      knows: ["Compatibility", "AgeEncryption", "ObjectStorage", "StoreFiles", "Backup", systemPackage]),
    module(
      "RecordBrowsing", on: .recovery,
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Examination",
        "PageRecovery", "Backup", grdb, grdbSQLite, systemPackage,
      ]),
    module(
      "SupportBundle", on: .recovery,
      knows: ["Compatibility", "AgeEncryption", "Archives", "StoreFiles", systemPackage]),
    // No part of the product Lazaret.
    module(
      "BundleWriting", on: .recovery,
      knows: ["AgeEncryption", "Archives", "SupportBundle", "StoreFiles", systemPackage]),
    module(
      "Damage", on: .recovery,
      knows: ["StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb, systemPackage]),
    module("Quarantine", on: .recovery, knows: ["StoreFiles", systemPackage]),
    module("ScrubbingCheck", on: .recovery, knows: ["Compatibility", "CZlib", "StoreFiles", systemPackage]),
    module(
      "Scrubbing", on: .recovery,
      knows: [
        "Compatibility", "Archives", "ScrubbingCheck", "StoreFiles", "PropertyLists", "SQLiteFormat",
        "ManagedObjectModel",
        "PersistentStore",
        "PageRecovery",
        "Cryptography",
        systemPackage,
      ]),
    module(
      "StoreExport", on: .recovery,
      knows: [
        "Compatibility", "AgeEncryption", "Archives", "StoreFiles", "SQLiteFormat", "ManagedObjectModel",
        "ModelPresentation", "PersistentStore", "Examination", "RecoveryKit", "PageRecovery", "Scrubbing",
        "ScrubbingCheck", "SupportBundle", "BundleWriting", "Quarantine", grdb, systemPackage,
      ]),
    module(
      "Sending", on: .recovery,
      knows: [
        "Compatibility", "TusProtocol", "SupportBundle", "StoreFiles", "Quarantine", "Cryptography", systemPackage,
      ]),
    module(
      "StoreCoordination", on: .library,
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Examination",
        "Migration",
        "PageRecovery", "Salvage", "Backup", "BackupRestore", "Quarantine", "RecoveryKit", "AgeEncryption",
        "SupportBundle",
        systemPackage, logging,
      ]),
    module(
      "ExportCoordination", on: .library,
      knows: [
        "AgeEncryption", "BundleWriting", "Quarantine", "Scrubbing", "StoreCoordination", "StoreExport", "StoreFiles",
        systemPackage,
      ]),
    module(
      "Lazaret", on: .library,
      knows: [
        "Compatibility", "ManagedObjectModel", "Migration", "RecoveryKit", "StoreCoordination", systemPackage, logging,
      ]),
    module("LazaretSupport", on: .library, knows: ["BundleWriting", "ExportCoordination", "Lazaret", systemPackage]),
    module("LazaretGRDB", on: .library, knows: ["Lazaret", grdb, systemPackage]),
    module(
      "Inbox", on: .programs,
      knows: [
        "Compatibility", "AgeEncryption", "Archives", "StoreFiles", "PersistentStore", "Examination", "PageRecovery",
        "Quarantine", "SupportBundle", "TusProtocol", "StoreCoordination", "HTTPServer", "CLinux", grdb, "Cryptography",
        systemPackage,
      ]),
    // Loads libpq itself where a database is asked for; nothing is linked.
    module("InboxPostgres", on: .programs, knows: ["Compatibility", "Failures", "Inbox", "StoreFiles"]),
    module(
      "InboxObjectStorage", on: .programs,
      knows: ["Compatibility", "Failures", "Inbox", "ObjectStorage", "StoreFiles", systemPackage]),
    module(
      "Inspector", on: .programs,
      knows: [
        "Compatibility", "BundleWriting", "Inbox", "ModelPresentation", "ModelReview", "ObjectStorage", "Sending",
        "SupportBundle",
        "StoreFiles", "PropertyLists", "RecoveryKit",
        "PageRecovery", "ExportCoordination", "StoreCoordination", "RecordBrowsing", "HTTPServer", logging,
      ]),
    module(
      "Commands", on: .programs,
      knows: [
        "Compatibility", "CLinux", "AgeEncryption", "ExportCoordination", "StoreCoordination", "Inbox",
        "InboxObjectStorage",
        "InboxPostgres", "Inspector", "HTTPServer",
        "Backup", "BundleWriting", "EntityRestore", "ModelPresentation", "ModelReview",
        "Damage", "Migration", "LazaretTesting", "RecoveryKit", "Salvage", "Sending", "SwiftModelSources", "Zstandard",
        "ObjectStorage", "ObjectStorageBackup",
        argumentParser, grdb, logging,
      ]),
    .executableTarget(
      name: "LazaretTool", dependencies: ["Commands"], path: Floor.programs.path(of: "LazaretTool"),
      swiftSettings: settings),
    // It has the tool built itself: with the tool among its dependencies, every build would compile all modules twice.
    .plugin(
      name: "CheckModels",
      capability: .command(
        intent: .custom(
          verb: "check-models",
          description: "Checks a package's Core Data models: what a change would lose, and whether versions migrate."))),
    .executableTarget(
      name: "lazaret-benchmarks",
      dependencies: [
        "StoreCoordination", "Migration", "SQLiteFormat", "RecordBrowsing", "Salvage", "Damage", argumentParser, grdb,
      ],
      path: "Benchmarks",
      exclude: ["SALVAGE.md"],
      swiftSettings: settings),
    .target(
      name: "FuzzTargets",
      dependencies: [
        "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "ModelPresentation", "BundleWriting",
        "PersistentStore", "Examination",
        "Migration", "LazaretTesting", "Salvage", "Scrubbing", "Quarantine", "RecoveryKit", "HTTPServer",
        "AgeEncryption", "Archives", "SupportBundle", "TusProtocol", "Sending", grdb, systemPackage,
      ], path: "Fuzz/Targets", swiftSettings: settings),

    .target(
      name: "TestSupport", dependencies: ["StoreFiles", systemPackage], path: "Tests/TestSupport",
      swiftSettings: settings),
    .target(
      name: "StorageServers",
      dependencies: ["Compatibility", "ObjectStorage", "StoreFiles", "TestSupport", "TusProtocol"],
      path: "Tests/StorageServers", swiftSettings: settings),
    .target(
      name: "ModelMaking", dependencies: ["ManagedObjectModel"], path: "Tests/ModelMaking", swiftSettings: settings),
    tests(of: "Failures"),
    tests(of: "HTTPServer", needs: ["Failures"]),
    tests(of: "StoreFiles", needs: ["CLinux"]),
    tests(of: "ObjectStorage", needs: ["StorageServers"]),
    tests(
      of: "ObjectStorageBackup",
      needs: ["AgeEncryption", "Backup", "BackupRestore", "ObjectStorage", "StorageServers", "StoreFiles", grdb]),
    tests(of: "PropertyLists"),
    tests(of: "SQLiteFormat", needs: [grdb]),
    tests(of: "ManagedObjectModel", needs: ["ModelPresentation", "PropertyLists", grdb]),
    tests(of: "SwiftModelSources", needs: ["ManagedObjectModel", "StoreFiles"]),
    tests(of: "PersistentStore", needs: ["ManagedObjectModel", "StoreRecords", grdb]),
    tests(of: "Examination", needs: ["ManagedObjectModel", "PersistentStore", grdb]),
    tests(
      of: "Migration",
      needs: [
        "ManagedObjectModel", "ModelMaking", "ModelReview", "PersistentStore", "PropertyLists", "StoreRecords", grdb,
      ]),
    tests(
      of: "LazaretTesting", needs: ["Examination", "ModelMaking", grdb],
      leavingOut: ["Snapshots"]),
    tests(of: "Damage", needs: ["Examination", "ManagedObjectModel", "PersistentStore", grdb]),
    tests(of: "PageRecovery"),
    tests(
      of: "Salvage",
      needs: [
        "Damage", "Examination", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "RecoveryKit",
        "SQLiteFormat", "StoreRecords", grdb,
      ]),
    tests(
      of: "RecoveryKit",
      needs: ["LazaretTesting", "ManagedObjectModel", "PersistentStore", "SQLiteFormat", grdb]),
    tests(
      of: "Backup",
      needs: [
        "AgeEncryption", "Archives", "BackupRestore", "EntityRestore", "LazaretTesting", "ManagedObjectModel",
        "PageRecovery", "PersistentStore", "Zstandard", grdb,
      ],
      leavingOut: ["Recorded"]),
    tests(
      of: "RecordBrowsing",
      needs: [
        "Backup", "Damage", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "SQLiteFormat", "Salvage", grdb,
      ]),
    tests(
      of: "Scrubbing",
      needs: [
        "Damage", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "PropertyLists", "Salvage",
        "ScrubbingCheck", grdb,
      ], searches: true),
    tests(of: "Cryptography"),
    tests(of: "AgeEncryption", needs: ["Failures", "StoreFiles"]),
    tests(of: "TusProtocol"),
    tests(of: "Archives", needs: ["StoreFiles"]),
    tests(of: "SupportBundle", needs: ["AgeEncryption", "Archives", "BundleWriting", "StoreFiles"]),
    tests(of: "Quarantine"),
    tests(
      of: "Inbox",
      needs: [
        "AgeEncryption", "Archives", "Damage", "Failures", "HTTPServer", "InboxObjectStorage", "InboxPostgres",
        "ObjectStorage", "StorageServers", "StoreCoordination", "LazaretTesting", "LazaretTool", "ManagedObjectModel",
        "Quarantine", "StoreFiles", "SupportBundle", "TusProtocol", "Cryptography", grdb,
      ]),
    tests(
      of: "StoreExport",
      needs: [
        "AgeEncryption", "Damage", "ExportCoordination", "StoreCoordination", "LazaretTesting", "LazaretTool",
        "Scrubbing",
        "StoreFiles",
        "SupportBundle", grdb,
      ]),
    tests(
      of: "Sending",
      needs: [
        "AgeEncryption", "BundleWriting", "HTTPServer", "ObjectStorage", "Quarantine", "StorageServers", "StoreFiles",
        "SupportBundle", "TusProtocol",
      ]),
    tests(of: "Compatibility", needs: ["StoreFiles"]),
    tests(
      of: "StoreCoordination",
      needs: [
        "LazaretTool", "Damage", "LazaretTesting", "Migration", "RecoveryKit", "Salvage", grdb, grdbSQLite, logging,
      ]),
    tests(
      of: "Lazaret", needs: ["LazaretSupport", "Quarantine", "StoreCoordination", "StoreFiles", grdb, logging]),
    tests(of: "LazaretGRDB", needs: ["Lazaret", grdb]),
    tests(
      of: "Inspector",
      needs: [
        "AgeEncryption", "HTTPServer", "Inbox", "InboxObjectStorage", "ObjectStorage", "Quarantine", "StorageServers",
        "StoreCoordination", "Damage", "LazaretTesting", "ManagedObjectModel", "SupportBundle", "PersistentStore",
        "StoreFiles", grdb,
      ]),
    tests(
      of: "Commands",
      needs: ["HTTPServer", "StoreCoordination", "LazaretTool", "SwiftModelSources", argumentParser, grdb],
      leavingOut: ["Snapshots"]),
    tests(of: "FuzzTargets"),
  ] + fuzzer
)
