/// The words that this software's own texts, keys and names are made of; written by `Scripts/own-words`.
///
/// Where one of them is found in a report it tells nothing of a record that happens to hold it too.
enum OwnWords {
  /// Words of four and more letters, in lower case.
  static let all: Set<Substring> = Set(text.split(whereSeparator: \.isWhitespace))

  private static let text = """
    abcdef about above absent abstract accept accepted accepts access account accounts achange across action actions
    active added address affected affinity after again against ageerror agreeing agreement ahead aifc aiff alias
    aliasfield alike allbytes allocatedsize allow allowed allows allthere alone already alreadyexists alter altered
    alternatives although ambiguous among analysing analysis analyze another ansck answer anystore anything apart
    application applicationid appversion arch architecture archive archiveerror areallindexed arebelieved
    arecontradicted arena arglisttoolong argument array arrived arriving ascending ascii asdamaged asdeclared asfound
    aside asidetarget asked asks assembly atnumber atoldplace atransaction atransactionstring attach attempt attempts
    attoseconds attribute attributecolumns attributes auto autoincrement autoindex automaticindexes available avif away
    back backed backgroundpass backup backupidentifier backupname backups badcells badpointers bagging bagit base bases
    basis basiswords batch batchsize because becomes been before beforeinstall beforemigration beforenew beforerestore
    began begin beginning begins beginsconstraint beginswithletter begun behind behindend believed belong belongs below
    beside best bestfit better between bigendian binary binarypropertylist bitflips bits blob blobs block blocks body
    bookkeeping bookkeepingwords bool boolean border borders both bounds bplist brings broken brought btreeinitpage
    buckets budget buffer builder bundle bundledamaged bundledname bundleunreadable busy busytimeout byentity byname
    bynumber bysum bytable byte bytes cache cached cachedmodel caff called came canbenull cancelled candidate candidates
    cannot cannotopen canonical cantopen capacity capitalizedfirst carriedrenames carries carving case cases cast
    catalog catalogs catalogue catalogueunreadable cause causes cell cellcount cellcounts cellend cellinvalid
    cellpointerinvalid cells cellsoverlap cellstart census certain certainty chain chains chancecount chancematches
    chanceplaces chances change changecounter changed changedplaces changedvalues changes changing char character
    characters check checked checker checking checkinterval checkpoint checkpointsequence checksswaps checksum child
    children choice choices choose chosen chunk circle civil claimed claims classes clause cleantails clob clock close
    closed cloud coalesce code codes codeunits collate collation collected column columncount columnmatching columnnames
    columnorder columns columnsleftout comes comm command commit commitsbehindbreak committed committedframes
    committedpagecount common commondoubt companions compare compared comparison comparisons compatible compiled
    compiledmappingmodel complaint complete completed component composite compositeleaf compressed concernsdata
    concernsrecords condition conditions confidence configuration conflict conflicts connection connections constraint
    constraintleftout constraints contact container contains content contentbytes contentlength contents contentstart
    contested context continuation continue contradict contradicted contradictedlog contradicting contradictingpages
    contradictions contradicts control convert converted coordinator copied copiedcount copies copy copying core
    coredata coredatacode correct corrected corruption could count counted countednumbers counter counters counting
    countings counts countsrecords covered crawl create created creates creating creation creationfailed cross
    crossdevice current currentmodel currentversionname cursor damage damaged damagedmetadata damagedpages damagedtables
    dangling danglinglink data database databaseerror databaseofversion databasepages databases databasevalue dataend
    date dates dateshifthasseconds datesranked datesshifted dayofera dayofyear days dbmoved dead debug debugging decided
    decides decimal decision declarations declared declaredtype decrement decrypt decrypted decrypting deep deeper
    default defaultcachesize defaulted defaults defaultvalue defer deferrable deferred definition definitions delete
    deleted deleteddigests deletedrecords deletes deliveries denied density depth derived derivedattribute
    derivedattributewithouttrigger desc describes description descriptor descriptors destination destinationcolumn
    destinationofotherentity destinationorder destinationordercolumn destroyed destructor detach detail details detected
    detours device dflt dictionary differ differences different differently differing differs digest digests digit
    digits direct directory directorynotempty dirtytails discard discarding disk diskquotaexceeded disputed distance
    distances distinct dividers dividerstarts doctype document does done donor donorremarks doub double doubling doubt
    doubtful doubtfulcount doubtfulreasons doubtreason doubts doubtwords down download downloaded drift drop dropped
    droppedroot dropping dryrun duck duplicatevalues each earlier earlierruns eighth elapsed elements else elsewhere
    embedded empty emptyindexes emptypages emptystore encodedtext encoder encoding encodings encodingunknown encrypted
    encryption ended endeduncleanly ending endofdatabase ends endsexactly enough entities entity entitycolumn
    entitycounts entityfields entityindexes entitylayout entityname entitynumber entitynumbers entries entry entrypage
    environmentalerror equal errno error escape estimate estimated evaluated event events every everything evidence
    evidencechanged evidencefault exact examination examine examined examiner examining examples exchange exclusive
    exemptcount exemptvalues exist exists expansion expansionnotzero expected expectednames expectedtables expects
    explain export exported exporting exports expression expressions extended extends external externalbytes
    externaldata externalize facts failed failing fails failure failures false farthest fate fates feff fence fetch
    fetchedproperty fewer fffd field fieldcount fieldcounts fields file fileerror fileerrorkind fileexists filekind
    filename filenametoolong filepages filepath files filesystem filetoolarge filetoolong filetooshort fill filled
    filling film filter find finding findings finds findsdeleted fingerprint finish finished first firstblob firstbytes
    firstfreeblock firstfreelisttrunk firstkey firstkeys firstpage firstpositive firstserialtype fits fitsmodel fitting
    flac flags flaws flippable flipped flippedkind flips floa float folder folders followers follows forecast foreign
    foreignfile foreignjournal foreignlog foreignmodel foreignrun foreigntables foreseen form format formatversion
    former found foundby foundbycontent foundcolumns founddamage foundtables four fraction fractions fragment
    fragmentation fragmentcountwrong fragmented fragmentedbytes fragments frame framecount framelength frames
    framesbypage framesperpiece framework frameworkversion free freeblock freeblockinvalid freeblocks freebytes
    freecount freelist freelistcount freelistcountwrong freelistdamaged freelistleaf freelisttrunk freelisttrunkinvalid
    freepage freespace fresh from frombackup fromindex ftyp full function gain gapbytes gapcount gappages gaps gave
    generated generation generator geometry geopoly give given gives gobehindend goes gone grounds group grouped groups
    grown gzip hadany hadmark half halfpair halves hand happened happens hard hasalias hasalltables hasany hasaside
    haschanged hascleantails hascommittedframes hascrossedlinks hasdamage hasdefault hasdescendingkey hasdigits
    hasdoubts hasended hasentitynumbers hasexpressions hasexternal hasforeignvalues hash hasher hashes hasinner
    hasintegerkey haskeys haskeyword hasleftover haslistedrows haslogfile haslosses haslostend hasmagic hasmain hasmark
    hasmetadata hasorphans hasotherpages hasotherrows hasothershape hasothertrees hasplainpage hasprefix
    hasreservedtypes hasroomforrivals hasrowid hasrowids hasrows hassignature hasstore hasstrangers hasstuck
    hassubentities hassums hastriesleft hasunsaved hasusualfractions haswholepages haswholeschema have having head
    header headercontradicted headerdestroyed headerend headerlength headeroffset headertruncated headline heads health
    healthy heard heic heix held helps here hexadecimal hexadecimaldigits hidden hierarchy high highest highestgone
    highestkey highestkeys highestpage hint histories history hold holder holds hole holes home html icloud icns
    identifier identifiers identities identity ifdir iflnk ifnull ifreg ignore ignores ignoreslog image images immutable
    impossible improperlink included incompatible increment incremental incrementalvacuum index indexcountdiffers
    indexdefinition indexed indexedcolumns indexedvalues indexes indexesonly indexinterior indexlayout indexleaf
    indexleftout inexact inferred infile info inherit init injournal inlog inner innerpages inode inpages input
    inputoutput inrange inresult insert inserted insertedcount insertion inside inspect inspected install installation
    installed installing instead instr integer integers integrity intercept interior interrupt interrupted
    interruptedtransaction interval into inuse invalid invalidargument invalidtext invalidtextcount invalidtexts inverse
    inwindow ioerr ioerror isabove isalone isaltered isamongcapitals isany isapart isarmored isascending isasked isatend
    isautovacuum isbad isbalanced isbeginning isbeside isbetter isbetweenpages isbeyondchance isbigendian isblob
    isbookkeeping isbounded isbroken isbuilt isbusy isbycontent isbynumber iscancelled iscertain ischangeable ischanged
    ischecked ischecksumright isclosed iscoherent iscomplete iscomputed isconfused isconsistent iscontested
    iscontradicted isconvincing iscopy iscoredata iscurrent iscut iscutoff isdamaged isdate isdecidedbymodels isdecisive
    isdeclared isdeferring isdescending isdescendingkey isdigit isdirectory isdone isdoubtful isdropped isempty
    isencrypted isencryptedorrandom isend isended isentity isenvironmental isequal isevidence isexact isexchangeable
    isexclusive isexpansionzero isfaithful isfile isfilereadable isfilled isfinite isfirst isfirstblockinside isfirstin
    isfirstpagereadable isfirstvisit isfit isfitting isflipped isfolder isforeign isforeignfile isframe isfree
    isfreelistsound isgone isgood isguessed isheader isheaderplausible ishere ishexadecimal ishigh ishighbefore
    isidentifier isidentity isimpossible isincomplete isindex isinquarantine isinside isinstalled isinteger isinternal
    isinterrupted isjoined isjournalapplied isjournalforeign isjournalown iskeptbyothers iskey isknown isknownbyrows
    islast islastin islastpage isleaf islegal islength isletter islikeanother islinked islisted islittle islive islocked
    islogapplied islogforeign islogmode islogown islostexact islow islower ismade ismandatory ismarked ismissing ismixed
    ismore ismostlypages ismostlystrange ismoved isnarrow isnear isneeded isnewerthanapp isnext isnotnull isnull
    isnullseen isnumber isofcoredata isofnewerapp isofrepair isofthisround isofunknownentity isolder isondisk isone
    isonly isopen isordered isother isotherwriter isoutoforder isoutsidemodel isoverlaycontradicted isown isownname
    ispagecountvalid ispartial ispartialindex isplain ispoint ispossible isprimarykey isproved isreached isread
    isreadable isreadonly isreferenced isreflexive isrenumbered isreplacing isreportkept isreserved isroot isrough isrow
    issame issamename issamenumber issegment issequence isshared issharpbefore issharpbehind isshort isshortest issign
    issingled issorted issound issparse isstart isstore isstrict issure issuspect istable istaken istelling istext
    istextvalid isthere isthorough istold istomany istoolarge istoolong istoomany istoomuch istoowide istorn istrusted
    isunbroken isunchanged isuneven isunique isunknown isunsaved isuntyped isunusual isup isupper isusable isusableasis
    isvalid isvaried isvirtual iswaiting iswalked iswanted iswatched iswellformed iswhole iswide iswithin iswithlosses
    iswithoutrowid iswrite iswriteractive iswritten iswrong iszero iszerostart items itself join joined joins jointable
    jointablelayout jointables jointablesbyentity joints journal journaldone journalfinished journalheaderdestroyed
    journalheaderinvalid journalhot journalpage journalpagesizediffers journalrecordchecksumwrong journalrecordinvalid
    journalsize journaltruncated journalunreadable jpeg json judge judged judgement just keep keeping keeps kept
    keptapart keptbytes keptmatches kernel keycolumns keyfields keyname keyneeded keypath keyrows keys keystatement kind
    kindbyte kinds kitfolder kitremarks kits kitsource know known knownentities knownpages knows labels lack lacked
    lacking lackingtables lacks lacksdeclarations laidover large larger largereplaced largest largestrootpage
    largestrootwrong last lastframe lastkey lastkeys lastoftransaction lastpage lastrowid lastusedpage later laterformat
    latest layout layouts lazakit lazaret lazareterror lead leading leadingon leadingto leads leadsonto leaf leafbytes
    leafpayloadfraction learn least leave leaves leavessomething left leftchild leftcount leftout leftovers
    leftoverscode legacy length lengths lengthshift lengthsize lets letter letters level levels library lies like likely
    limit limits line lineage lines lineseparator link linkcount linked links linux list listed listing lists literal
    littleendian live local localend localpayload lock lockbytepage lockbytes locked locking locks lockwholefile
    logbehinddatabase logbesideemptydatabase logcutoff logdone logframe logframechecksumwrong logframedamaged logger
    logheader logheaderchecksumwrong logheaderdestroyed logheadertruncated logindex logmagicwrong logmissingpages
    logpagesizediffers logpagesizeinvalid logpartialframe logstaleframes loguncommittedframes logversionunknown long
    longcount longer longest longvalue look looked looking looks lookup loser loss losses losswords lost lostbasis
    lostcellpointers lostisexact lostkeys lostkeysknown lostnumber lostpages lostpointers lower lowercase lowercased
    lowest lowkeymaximum ltrim made magic magicmissing main maincount maindone mainheader make makedirectory makeroom
    makes makesroomfor makeuuid malformed mandatory mandatorycolumn manifest mantissa manual many mapped mapping
    mappingfile mappingmodel mappingmodelsource maps mark marked marks markup mask master match matched matches matching
    material maximum maximumcolumns maximumcount maximumindexlocal maximumlocal maximumpayloadfraction maximumtablelocal
    mayrebuild mean meaningless meanslinksareunsupported meant meanwhile measure media meet member members memory
    memorybytes memorydatabase mended message metadata metrics microseconds middle migratable migrate migrated
    migratedto migrates migrating migration migrationerror migrationfailed migrationfailedcode migrationfailure
    migrationretries migrator mine minimumfields minimumlocal minimumpayloadfraction misfits misplaced misplacedpage
    misplacedpages missed missing missingattributevalue missingbookkeepingcolumn missingbookkeepingtable missingcolumn
    missingfiles missingindex missingjoincolumn missingjointable missingkeyrow missingnumbersinrows missingrelationship
    missingspatialindex missingtable missingtrigger missingvalue mixed mmap mode model modelbundle modelcache
    modelchecksum models modelversion modified module moment moments month monthfrommarch mood more most mostlyusual
    mount move moved movedcount moving mthd much multiple name named names namesake nametoolong nanoseconds narrower
    natural need needed neededbytes needs needsrewriting neither never newer newest newmandatoryattribute
    newmandatoryrelationship newstore next nextcell nextfour nextsuffixes nexttwo nfield nibbles ninstalling nocase node
    nodes nofunction noise nolfs nolocks nomem nomemory nomodel nonce none nootherstore normal nospace
    nosuchfileordirectory notadatabase notboolean notdirectory notdownloaded notdue note noted notedhashes notes
    notfound nothing nothingfound nothingtoquarantine notice notmigratablecode notneeded notnoted notnull notpermitted
    notregularfile notsalvaged notscrubbed notsupported notuuid noun nowhere nsautovacuumlevel
    nscoredatadatriggerinsertupdatedaffectedobjectvalue nscoredatadatriggerupdatedaffectedobjectvalue nscoredatanow
    nscoredatatriggerupdateaffectedobjectvalue nsentityomitsubentitycolumnindex nspersistenceframeworkversion
    nspersistencemaximumframeworkversion nsstoremodelversionchecksumkey nsstoremodelversionhashes
    nsstoremodelversionhashesdigest nsstoremodelversionhashesversion nsstoremodelversionidentifiers nsstoretype ntag
    null number numbering numbers numeric numericindexes object objectid objectname observer occupied occupiedsize
    oddends oddtexts ofanyclass ofentrypages offer offragments offset offsetsize ofleaves often oggs older once ones
    oneway onlostpages only onpages open opened opener opening openingevent openings opens operatingsystem operation
    operators options order ordercolumn ordercolumns ordered orderedcolumns orderednumbers orderedtexts orders origin
    original originalpagecount originalpath originals orphan other otherbookkeepingtable otherdatabase otherdatabases
    otherentityname otherentitynumber othergeneration othermodelcached othernames othernumbers othernumbersinrows
    otherobject otherorder otherparentnumber otherprimarykey others otherthankit othertype otherwise ours outcome
    outdated outline outofmemory outoforder outofrange output outputexists outputisstore outputs outside outsidemodel
    outsidespan outstanding over overflow overflowchains overflowends overflowfirst overflowing overflowmask
    overflownext overflowpage overflowpages overflowtoolong overflowtooshort overlap overlapping overlaps overlay
    overlaysource overwrite overwritten owner ownercolumns ownermap ownernumber ownerorder ownerrun owners ownership
    ownfields ownrowid owntables oxum pack packed packedbytes packing padded padding page pagecopies pagecount
    pagecountstale pagedoubt pageheaderinvalid pagekindwrong pagelayout pagemissing pageneverused pageoffsets
    pageoutofrange pages pagesbehindend pagesconfirmed pagesdone pagesize pagesizeinvalid pagesseen pagestates
    pageswithflippedbit pageusedtwice pair pairs paragraphseparator parameter parameters parent parentname parentnumber
    part partial partialindexmadewhole partialpage partition partlength partly parts pass path paths pattern pause
    payload payloadfractionswrong payloadlength payloadlimit payloadmask payloadtoolong pbzx peek pending percent
    percentwords perhaps perm permission permissiondenied permissions perpage persistentstore pgno phase picture piece
    pieces place placed placeholder placement placeof places placetaken plain plaincount plan platformbytes please plist
    plural pointer pointerarrayoffset pointermap pointermapentries pointermaps pointermapsdamaged pointermapwrong
    pointers pointersend policy position posix posixerror possible possibly power pragma pragmaname prefix prepared
    present presentcount preview previous previousend primary primarykey primarykeycolumns primarykeyplace
    primarykeyposition primarykeys printable prints private probable problems proc process processid processors profile
    profiles program progress properties property propertykey propertylist propertynames propertypath protocol proved
    proven provenance pruning pseudonym pseudonyms purpose puts quarantine quarantinecase quarantined quarantinedpath
    quarantinedstore quarantinefolder quarantineid quarantines quarantining queue quick quit quote quoted
    quotedidentifier raise random randomblob randompages range ranges rangesleft ranksdates rarely ratios rawbytes
    rawvalue reach reached read readable reader reading readmarks readme readmes readonly readonlyfilesystem reads
    readversion readversionunknown real realhome reals reason reasons reasonsbycount rebuild rebuilt receipt receiptpath
    receiptunreadable received receiver recent recentcount recententity recentpiece recentplace recipients record
    recordlength recordmalformed records recordsbypage recordsofabstractentity recordsperpiece recounts recover
    recovered recovery recoverykit recoverykiterror recoverykitinterval recursive reduction reference referencecount
    referencedtable referenceloss references referencescut referencesize referring refill reflexive refusal refusals
    refuse refused refuses region regular reindex related relationship relative relay release released releases
    relocation remain remaining remains remark remarks remedies remove removed removedirectory removedrows removes
    rename renamed repair repairable repaired repairfailedcode repairing repairs repeated replace replaced replaces
    report reportableerror reported reportpath reports represented request requestcode rescued reserved reservedbytes
    reservedbytesinvalid reservedcounts reservedpageused reserves reset resolve resolved resourcebusy
    resourcetemporarilyunavailable rest restore restored restorer result resultcode results resumedsteps retries
    returning rewritten riff right rightmostchild role roles rollback rollbackjournal rolled room roomdown roomin
    roomout roomup root rootentityname rootname rootpage rootpgno roots roughly round rounds rowid rowidalias rowidname
    rowidorder rowids rows rtree rtreecheck rtrim rule rules runs runstart safely said salt salted salts salvage
    salvaged salvageerror salvagefailed salvagefiles salvageinstallation salvagelater salvagepending salvagephase
    salvager salvageunusable salvaging same samestore sample samplelength samples savecount saves says scalar scan
    scanner scheduled schema schemacookie schemaencoding schemaformat schemaformatunknown schemanames schemarootinvalid
    schemarowmalformed schemas schemascript schemascriptrefused schematoolarge schemawords scope score scores scratch
    script scrub scrubbed scrubbing scrubsbesidefrom sealed sealer seam search searchesvalues second secondgain seconds
    secondsleft secondssince secondssincereferencedate secret sector sectors sectorsize security seed seekdata seekhole
    seems seen segment select selection self selinux send sense sent sentences separator seqno sequence serialized
    serialtypes serious serve service setaside setasidefile setasidepath setasiderows setting settled settlement
    settlingtime several severalowners severity shadow shadows shape shapes share shared sharedmemory shares shift
    shifted short shortcount shorter shortest should show shown shrink shut side sign signatures signs silent since
    single size sizeinfile sizes sizeselsewhere sizing slack slot slots smaller software some something sort sorted
    sorter sorting sound soundrecords source sourcecolumn sourceorder sourceordercolumn sources space span spatial
    spatialindexes spatialindexlayout special spellings splitatcommas sqlcipher sqlcolumn sqlite sqlitecode
    sqliteversion sqliteversionname sqlname sqlreference sqlsummand sqltarget sqltext stack stage staged stale
    stalefirstpage stalelog stand standard standings stands standsforcause start starts startshift stat state stated
    statedpagecount statement statements states statistics status statuschanged stay stayed stays stem step steps still
    stood stop stopped stopwaiting storage storages store storebytes storechanged stored storedata storedcellcount
    storedcolumns storedencoding storedleafcount storedpagesize storedrecordcount storedvalue storeexport storemodel
    storenotsound storeoptions storeorigin storepath stores storetype storeuuid storewrittenbysqlite strange straypages
    stream strict string struck structural stucknumbers subject substr succession successor successors such suffix
    summand summary sums super superentities superfluous superjournalexists superjournalgone superjournalnamed
    superseded supersededcount support supportbundleerror supports surplus surroundings survey suspect suspects swaps
    symbol symbolic symboliclink symbols synchronize synchronizedirectory synchronous system systems table
    tabledefinition tableindexes tableinterior tablelayout tableleaf tablename tables tableswithoutnumbers taglist
    tagmanifest tags tagsums tail tails take takeback taken takenback takenkeys takes tallies tally target targetindexes
    targets tell tells temp temporary text textend textornull texts than that their theirs them themselves then there
    these they third this those thread threads three through thrown tied tightnumbers tightvalues tiling time timeline
    times timestamp title tmpdir toend together tokenize tokenizer tokens told tomanybycolumn tomanybyjointable
    tombstones toofewdestinations tool toolarge toomanydestinations toomanygroups toomanyopenfiles
    toomanyopenfilesinsystem toomanysymboliclinklevels toone tooneentity tooneorder toones torn tornsectors total
    totalbytes trace trailer traits transaction transactions transactionstring transformable transition treat tree
    treepages trees treetoodeep treeuneven tried tries trigger triggerlayout triggernames triggers trim true truncate
    truncated trunk trunks trust trusted trustsbackup twice twins type typeof types uint unable unallocatedspace
    unavailable unchanged unchanging unchecked unclaimed uncommitted uncommittedcount uncommittedframecount unconverted
    undefined under underothername understood undo undoesjournal undone uneven unexpected unexpectedcolumn
    unexpectedindex unexpectedtable unexplained unfinished unfinishedtransaction unfinishedtrees unfit unfitmodel
    unfitting unforeseen unindexedstatement union unique uniquecolumns uniqueconstraints uniqueness unit units unknown
    unknowncolumn unknownentity unknownname unknownwords unlesscontested unlink unlockwholefile unorderedvalues unpack
    unpacked unpacking unplaced unplacedentries unplacedrows unreachable unreadable unreadabledefault unsaved
    unsignedsum unstorable unstorablemodel unsupported unsure until untold untouched untyped unusable unusedmappings
    unusual unusualvalue unwatchedvalues upcoming update updated updates upper uppercase upperinverse upto usability
    usable usablesize used usedcount usedonlast user userversion uses usesfreshkey useslog useswriteaheadlog using ustar
    usual usualhint uuid vacuum vacuumfieldscontradict vacuuming valid validation validstring value valuecount
    valuelength valueoutofrange values valuesfound varchar variant verdict verdictreason verification verificationfailed
    verify version versionchecksum versionhashes versionhashesdigest versionidentifiers versions versionvalidfor very
    view views virtual visited vocab volume vote votes wait waited waiting waits walk walks want wanted wants warning
    warns wasreplaced watch watched watchedcodes watchedstarts watchedvalues wave wayround webp weights went were what
    when whendamaged whenforeign whenincompatible whenmigrationfails whenmigrationloses whenrepairable whensalvagefails
    where wherefilelacks whether which while whole wholes whose wide widecount width widths will window windowcount
    windowstart winner with within without withoutrowid word words wordswithkeys work working works worst would wounds
    writable write writeaheadlog writer writes writeversion writeversionunknown writing written writtenbysqlite wrong
    wrote xinfo yearofera yields your yourself zauthor zauthorts zbundleid zbundleidts zchangetype zcolumns zcontextname
    zcontextnamets zentity zentitypk zero zeroblob zeroed zeroedpages zeroends zeros zname zone zprocessid zprocessidts
    zquerygen zstd ztimestamp ztombstone ztransactionid
    """
}
