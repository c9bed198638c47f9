// swift-tools-version: 6.2
import PackageDescription

/// Warnings stop the build on continuous integration, and only there: a newer compiler must not break a user's build.
let isContinuousIntegration = Context.environment["CI"] != nil

/// Whether the modules are instrumented for libFuzzer and the fuzzer is built: only by `Scripts/fuzz`, in a folder of its own.
let isFuzzing = Context.environment["LAZARET_FUZZ"] != nil

let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (isContinuousIntegration ? [.treatAllWarnings(as: .error)] : [])
  + (isFuzzing ? [.unsafeFlags(["-sanitize=fuzzer"])] : [])

let systemPackage = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let grdbSQLite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

/// What reads Swift sources; resolved only where the trait `SwiftSources` is asked for, so that no app's build has it without need.
let swiftSyntax: [Target.Dependency] = ["SwiftSyntax", "SwiftParser"].map {
  .product(name: $0, package: "swift-syntax", condition: .when(traits: ["SwiftSources"]))
}

/// A floor of the house: the modules below are listed from the ground up, and each may only name modules above it in this list.
func floor(_ name: String, knows dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(of name: String, needs dependencies: [Target.Dependency] = [], leavingOut excluded: [String] = []) -> Target
{
  .testTarget(
    name: "\(name)Tests",
    dependencies: [.target(name: name), "TestSupport", systemPackage] + dependencies,
    exclude: excluded,
    swiftSettings: settings)
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
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Lazaret", targets: ["Lazaret"]),
    .library(name: "LazaretTesting", targets: ["LazaretTesting"]),
    .library(name: "SwiftModelSources", targets: ["SwiftModelSources"]),
    .executable(name: "lazaret", targets: ["LazaretTool"]),
    .plugin(name: "CheckModels", targets: ["CheckModels"]),
  ],
  traits: [
    .trait(name: "SwiftSources", description: "Reads SwiftData's models from Swift sources, with swift-syntax.")
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
  ],
  targets: [
    .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .systemLibrary(
      name: "CMicrohttpd", providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
    .systemLibrary(name: "CDeflate", providers: [.apt(["libdeflate-dev"]), .brew(["libdeflate"])]),
    .systemLibrary(name: "CZstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    floor("Failures", knows: [systemPackage]),
    floor("HTTPServer", knows: ["CMicrohttpd", "Failures"]),
    floor("StoreFiles", knows: ["CLinux", "Failures", systemPackage, crypto]),
    floor("TusProtocol", knows: ["StoreFiles"]),
    floor("AgeEncryption", knows: ["Failures", crypto]),
    floor("Archives", knows: ["CZlib", "CDeflate", "Failures"]),
    floor("PropertyLists", knows: ["StoreFiles", systemPackage]),
    floor("SQLiteFormat", knows: ["StoreFiles", systemPackage]),
    floor("ManagedObjectModel", knows: ["CZlib", "StoreFiles", "PropertyLists", crypto, systemPackage]),
    floor("SwiftModelSources", knows: ["StoreFiles", "ManagedObjectModel", systemPackage] + swiftSyntax),
    floor(
      "PersistentStore",
      knows: [
        "CSQLite", "StoreFiles", "PropertyLists", "ManagedObjectModel", grdb, grdbSQLite, crypto, systemPackage,
      ]),
    floor(
      "Examination",
      knows: [
        "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", systemPackage,
      ]),
    floor(
      "Migration",
      knows: [
        "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb, systemPackage,
        logging,
      ]),
    floor(
      "LazaretTesting",
      knows: [
        "StoreFiles", "PropertyLists", "ManagedObjectModel", "PersistentStore", "Migration", grdb, systemPackage,
      ]),
    floor(
      "RecoveryKit",
      knows: [
        "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb, grdbSQLite,
        systemPackage,
      ]),
    floor(
      "PageRecovery",
      knows: [
        "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "RecoveryKit", grdb,
        grdbSQLite, systemPackage,
      ]),
    floor(
      "Salvage",
      knows: [
        "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration", "RecoveryKit",
        "PageRecovery", grdb, systemPackage,
      ]),
    floor(
      "Backup",
      knows: [
        "AgeEncryption", "Archives", "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel",
        "PersistentStore", "Examination", "Migration", "Salvage", "RecoveryKit", grdb, grdbSQLite, systemPackage,
      ]),
    floor("Zstandard", knows: ["CZstd", "Backup"]),
    floor(
      "RecordBrowsing",
      knows: [
        "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "PageRecovery", "Backup", grdb, crypto,
        systemPackage,
      ]),
    floor(
      "SupportBundle",
      knows: ["AgeEncryption", "Archives", "StoreFiles", systemPackage]),
    floor(
      "Damage",
      knows: ["StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb, systemPackage]),
    floor("Quarantine", knows: ["StoreFiles", systemPackage]),
    floor("ScrubbingCheck", knows: ["CZlib", "StoreFiles", systemPackage]),
    floor(
      "Scrubbing",
      knows: [
        "Archives", "ScrubbingCheck", "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel",
        "PersistentStore",
        "PageRecovery",
        crypto,
        systemPackage,
      ]),
    floor(
      "StoreExport",
      knows: [
        "AgeEncryption", "Archives", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore",
        "Examination", "RecoveryKit", "PageRecovery", "Scrubbing", "ScrubbingCheck", "SupportBundle", "Quarantine",
        grdb, systemPackage,
      ]),
    floor(
      "Sending",
      knows: ["TusProtocol", "SupportBundle", "StoreFiles", "Quarantine", crypto, systemPackage]),
    floor(
      "Lazaret",
      knows: [
        "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Examination", "Migration",
        "PageRecovery", "Salvage",
        "Backup", "Quarantine", "RecoveryKit", "AgeEncryption", "Scrubbing", "SupportBundle", "StoreExport", "Sending",
        systemPackage, logging,
      ]),
    floor(
      "Inbox",
      knows: [
        "AgeEncryption", "Archives", "StoreFiles", "ManagedObjectModel", "PersistentStore", "Examination",
        "PageRecovery",
        "Quarantine", "SupportBundle", "TusProtocol", "Lazaret", "HTTPServer", "CLinux", grdb, crypto, systemPackage,
      ]),
    floor(
      "Inspector",
      knows: [
        "Inbox", "SupportBundle",
        "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Examination",
        "Migration", "RecoveryKit", "PageRecovery", "Backup", "Quarantine", "Lazaret", "RecordBrowsing", "HTTPServer",
        grdb,
        systemPackage, logging,
      ]),
    floor(
      "Commands",
      knows: [
        "AgeEncryption", "Lazaret", "Inbox", "Inspector", "HTTPServer", "Backup", "Damage", "Migration",
        "LazaretTesting", "RecoveryKit", "Salvage", "Sending", "SwiftModelSources", "Zstandard", "CLinux",
        argumentParser, grdb,
        systemPackage, logging,
      ]),
    .executableTarget(name: "LazaretTool", dependencies: ["Commands"], swiftSettings: settings),
    .plugin(
      name: "CheckModels",
      capability: .command(
        intent: .custom(
          verb: "check-models",
          description: "Checks a package's Core Data models: what a change would lose, and whether versions migrate.")),
      dependencies: ["LazaretTool"]),
    .executableTarget(
      name: "lazaret-benchmarks",
      dependencies: [
        "Lazaret", "Migration", "SQLiteFormat", "RecordBrowsing", "Salvage", "Damage", argumentParser, grdb,
      ],
      path: "Benchmarks",
      exclude: ["SALVAGE.md"],
      swiftSettings: settings),
    .target(
      name: "FuzzTargets",
      dependencies: [
        "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Examination",
        "Migration", "LazaretTesting", "Salvage", "Scrubbing", "Quarantine", "RecoveryKit", "HTTPServer",
        "AgeEncryption", "Archives", "SupportBundle", "TusProtocol", "Sending", grdb, systemPackage,
      ], path: "Fuzz/Targets", swiftSettings: settings),

    .target(
      name: "TestSupport", dependencies: ["StoreFiles", crypto, systemPackage], path: "Tests/TestSupport",
      swiftSettings: settings),
    tests(of: "Failures"),
    tests(of: "HTTPServer", needs: ["Failures"]),
    tests(of: "StoreFiles", needs: ["CLinux"]),
    tests(of: "PropertyLists"),
    tests(of: "SQLiteFormat", needs: [grdb]),
    tests(of: "ManagedObjectModel", needs: ["PropertyLists", grdb]),
    tests(of: "SwiftModelSources", needs: ["ManagedObjectModel", "StoreFiles"]),
    tests(of: "PersistentStore", needs: ["ManagedObjectModel", grdb]),
    tests(of: "Examination", needs: ["ManagedObjectModel", "PersistentStore", grdb]),
    tests(of: "Migration", needs: ["ManagedObjectModel", "PersistentStore", "PropertyLists", grdb]),
    tests(
      of: "LazaretTesting", needs: ["Examination", "ManagedObjectModel", "PersistentStore", grdb],
      leavingOut: ["Snapshots"]),
    tests(of: "Damage", needs: ["Examination", "ManagedObjectModel", "PersistentStore", "SQLiteFormat", grdb]),
    tests(of: "PageRecovery"),
    tests(
      of: "Salvage",
      needs: [
        "Damage", "Examination", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "RecoveryKit",
        "SQLiteFormat",
        grdb,
      ]),
    tests(
      of: "RecoveryKit",
      needs: ["LazaretTesting", "ManagedObjectModel", "PersistentStore", "SQLiteFormat", grdb]),
    tests(
      of: "Backup",
      needs: [
        "AgeEncryption", "Damage", "Examination", "LazaretTesting", "ManagedObjectModel", "PersistentStore",
        "SQLiteFormat", "Zstandard",
        grdb,
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
        "ScrubbingCheck", "SQLiteFormat",
        grdb,
      ]),
    tests(of: "AgeEncryption", needs: ["Failures", "StoreFiles"]),
    tests(of: "TusProtocol"),
    tests(of: "Archives", needs: ["StoreFiles"]),
    tests(of: "SupportBundle", needs: ["AgeEncryption", "Archives", "StoreFiles"]),
    tests(of: "Quarantine"),
    tests(
      of: "Inbox",
      needs: [
        "AgeEncryption", "Archives", "Damage", "HTTPServer", "Lazaret", "LazaretTesting", "LazaretTool",
        "ManagedObjectModel",
        "Quarantine",
        "StoreFiles", "SupportBundle", "TusProtocol", grdb, crypto,
      ]),
    tests(
      of: "StoreExport",
      needs: [
        "AgeEncryption", "Damage", "Examination", "Lazaret", "LazaretTesting", "LazaretTool", "ManagedObjectModel",
        "PersistentStore", "Salvage", "Scrubbing", "ScrubbingCheck", "StoreFiles", "SupportBundle", grdb,
      ]),
    tests(
      of: "Sending",
      needs: ["AgeEncryption", "HTTPServer", "Quarantine", "StoreFiles", "SupportBundle", "TusProtocol"]),
    tests(
      of: "Lazaret",
      needs: [
        "LazaretTool", "Damage", "LazaretTesting", "Migration", "RecoveryKit", "Salvage", grdb, grdbSQLite, logging,
      ]),
    tests(
      of: "Inspector",
      needs: [
        "AgeEncryption", "HTTPServer", "Inbox", "Lazaret", "Backup", "Quarantine", "Salvage", "Damage",
        "LazaretTesting",
        "ManagedObjectModel", "SupportBundle", "PersistentStore", "RecordBrowsing", "StoreFiles", grdb,
      ]),
    tests(
      of: "Commands", needs: ["HTTPServer", "Lazaret", "LazaretTool", "SwiftModelSources", argumentParser, grdb],
      leavingOut: ["Snapshots"]),
    tests(of: "FuzzTargets"),
  ] + fuzzer
)
