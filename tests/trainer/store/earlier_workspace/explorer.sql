PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES('0004');
CREATE TABLE run (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	config TEXT NOT NULL, 
	objective TEXT DEFAULT '' NOT NULL, 
	data TEXT DEFAULT '' NOT NULL, 
	preset TEXT DEFAULT '' NOT NULL, 
	parent INTEGER, 
	status TEXT DEFAULT 'queued' NOT NULL, 
	asked TEXT DEFAULT '' NOT NULL, 
	pid INTEGER, 
	start_ticks INTEGER, 
	boot_id TEXT DEFAULT '' NOT NULL, 
	launched_pid INTEGER, 
	launched_ticks INTEGER, 
	launched_at REAL, 
	step INTEGER DEFAULT 0 NOT NULL, 
	total_steps INTEGER DEFAULT 0 NOT NULL, 
	phase TEXT DEFAULT '' NOT NULL, 
	eta_s REAL, 
	beats INTEGER DEFAULT 0 NOT NULL, 
	heartbeat_at REAL, 
	created_at REAL NOT NULL, 
	started_at REAL, 
	sitting_at REAL, 
	ended_at REAL, 
	deleted_at REAL, 
	trained_s REAL DEFAULT 0 NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	note TEXT DEFAULT '' NOT NULL, 
	metric TEXT DEFAULT '' NOT NULL, 
	last REAL, 
	best REAL, 
	facts TEXT DEFAULT '{}' NOT NULL, 
	device TEXT DEFAULT '' NOT NULL, 
	slot TEXT DEFAULT '' NOT NULL, 
	priority INTEGER DEFAULT 0 NOT NULL, 
	place REAL, 
	"after" INTEGER, 
	alerts TEXT DEFAULT '{}' NOT NULL, 
	rss_mib REAL, 
	gpu_mib REAL, 
	CONSTRAINT ck_run_status CHECK (status IN ('queued','starting','running','paused','stopping','stopped','finished','failed','interrupted')), 
	CONSTRAINT uq_run_name UNIQUE (name), 
	CONSTRAINT uq_run_folder UNIQUE (folder)
)
 STRICT

;
INSERT INTO run VALUES(1,'old','0001-old',replace('name = "old"\nseed = 3\ndevice = "cpu"\nloading = "auto"\nworkers = 0\n\n[data]\nkind = "scenes"\nseed = 0\ntrain_pairs = 128\nheldout_pairs = 32\ncooccurrence = 0.0\n\n[model]\nkind = "tiny"\nimage_tower = "vit"\nimage_size = 32\nimage_width = 8\nimage_layers = 1\npatch_size = 8\ntext_width = 32\ntext_layers = 1\ntext_heads = 2\ncontext_length = 16\nvocabulary = 300\nembed_dim = 8\ntokenizer = ""\n\n[objective]\nkind = "simclr"\nsmallest_crop = 0.2\ncolour = 0.4\ngrey = 0.1\nblur = 0.5\nflip = false\nhidden_dim = 4\nprojection_dim = 4\nloss = "nt_xent"\ninv_tau = 5.0\nmargin = 0.5\n\n[optimiser]\nbatch_size = 32\nepochs = 10\nlearning_rate = 0.001\nweight_decay = 0.1\nwarmup_steps = 1\ncycles = 1\nbeta1 = 0.9\nbeta2 = 0.98\nepsilon = 1e-06\nclip_norm = 1.0\nmicro_batch = 0\nlayer_decay = 1.0\ncrop_scale = 0.9\n\n[watching]\nlog_every = 1\nevaluate_every = 4\nsnapshots = 2\ncheckpoint_every = 4\nfeatures = false\n','\n',char(10)),'simclr','Scenes','',NULL,'stopped','',NULL,NULL,'',NULL,NULL,NULL,9,40,'',NULL,14,1795433736.0879251957,1795433708.4519016742,1795433725.3589787483,1795433725.3589787483,1795433736.7318172454,NULL,11.314521754000452346,'Stopped after step 9 of 40; resume goes on.','','val/knn_acc1',0.25,0.28125,'{"device": "cpu", "parameters": 2704, "train_pairs": 128, "heldout_pairs": {"renderings": 32, "combinations": 32}, "fingerprint": "bd6bbaf91d40d2d191a166b0b95c0eda", "left_out": 0, "sittings": [{"at": 1795433732.532, "step": 0, "command": [".venv/bin/python", "-m", "trainer", "fit", "--config", "tiny.toml", "--workspace", "/tmp/space"], "version": "0.1.0", "git": {"commit": "11d4e17b6f952e701b2039f4e6d731f61a87b0b6", "changed": false}, "host": "computer", "system": "Linux", "cpu": "processor", "cores": 2, "threads": 2, "gpu": "", "device": "cpu", "versions": {"python": "3.11.7", "contrastive-explorer": "0.1.0", "torch": "2.15.0", "torchvision": "0.29.2", "open-clip-torch": "3.3.0", "numpy": "2.4.6", "pillow": "13.0.0"}}]}','cpu','',0,NULL,NULL,'{}',906.03906249999999998,NULL);
CREATE TABLE scalar (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	run INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	step INTEGER NOT NULL, 
	value REAL, 
	kind TEXT DEFAULT 'finite' NOT NULL, 
	time REAL NOT NULL, 
	elapsed_s REAL NOT NULL, 
	CONSTRAINT uq_scalar_run_name_step UNIQUE (run, name, step), 
	CONSTRAINT ck_scalar_kind CHECK (kind IN ('finite','nan','inf','-inf') AND (value IS NULL) = (kind <> 'finite')), 
	CONSTRAINT fk_scalar_run_run FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
)
 STRICT

;
INSERT INTO scalar VALUES(1,1,'val/knn_acc1',0,0.21875,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(2,1,'val/knn_subject_colour',0,0.21875,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(3,1,'val/knn_subject_shape',0,0.15625,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(4,1,'val/knn_object_colour',0,0.1875,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(5,1,'val/knn_object_shape',0,0.375,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(6,1,'val/knn_relation',0,0.375,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(7,1,'val/knn_ground',0,0.875,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(8,1,'val/knn_words',0,0.36529746295371295916,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(9,1,'combinations/knn_acc1',0,0.15625,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(10,1,'combinations/knn_subject_colour',0,0.15625,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(11,1,'combinations/knn_subject_shape',0,0.21875,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(12,1,'combinations/knn_object_colour',0,0.0,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(13,1,'combinations/knn_object_shape',0,0.03125,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(14,1,'combinations/knn_relation',0,0.28125,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(15,1,'combinations/knn_ground',0,0.875,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(16,1,'combinations/knn_words',0,0.39105998168498168343,'finite',1795433733.4110128878,7.9936999999999995836);
INSERT INTO scalar VALUES(17,1,'train/loss',1,4.1105990409851074218,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(18,1,'train/learning_rate',1,0.0010000000000000000208,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(19,1,'train/gradient_norm',1,0.63396245241165161132,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(20,1,'train/pairs_per_s',1,400.24033932072723019,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(21,1,'train/data_wait',1,0.36927855966707606727,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(22,1,'train/inv_tau',1,5.0,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(23,1,'system/cpu_percent',1,100.0,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(24,1,'system/memory_mib',1,904.78124999999999999,'finite',1795433733.6136438846,8.1963000000000008071);
INSERT INTO scalar VALUES(25,1,'train/loss',2,4.1124277114868164062,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(26,1,'train/learning_rate',2,0.0010000000000000000208,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(27,1,'train/gradient_norm',2,0.54995036125183105468,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(28,1,'train/pairs_per_s',2,385.01666267755587113,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(29,1,'train/data_wait',2,0.39306043078861396811,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(30,1,'train/inv_tau',2,5.0,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(31,1,'system/cpu_percent',2,100.0,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(32,1,'system/memory_mib',2,905.52734374999999996,'finite',1795433733.6972060203,8.2798999999999995935);
INSERT INTO scalar VALUES(33,1,'train/loss',3,4.1090064048767089843,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(34,1,'train/learning_rate',3,0.00099837865406710501678,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(35,1,'train/gradient_norm',3,0.58843976259231567382,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(36,1,'train/pairs_per_s',3,355.88022508712577973,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(37,1,'train/data_wait',3,0.2147304319041154208,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(38,1,'train/inv_tau',3,5.0,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(39,1,'system/cpu_percent',3,100.0,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(40,1,'system/memory_mib',3,905.77734375000000001,'finite',1795433733.7898895739,8.3726000000000002643);
INSERT INTO scalar VALUES(41,1,'train/loss',4,4.0461511611938476562,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(42,1,'train/learning_rate',4,0.00099352513131895645384,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(43,1,'train/gradient_norm',4,0.81814664602279663085,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(44,1,'train/pairs_per_s',4,340.83223541925059408,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(45,1,'train/data_wait',4,0.29798175233093926461,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(46,1,'train/inv_tau',4,5.0,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(47,1,'system/cpu_percent',4,100.0,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(48,1,'system/memory_mib',4,905.90625000000000004,'finite',1795433733.88423419,8.4669000000000007588);
INSERT INTO scalar VALUES(49,1,'val/knn_acc1',4,0.28125,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(50,1,'val/knn_subject_colour',4,0.28125,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(51,1,'val/knn_subject_shape',4,0.1875,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(52,1,'val/knn_object_colour',4,0.3125,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(53,1,'val/knn_object_shape',4,0.3125,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(54,1,'val/knn_relation',4,0.40625,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(55,1,'val/knn_ground',4,0.90625,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(56,1,'val/knn_words',4,0.36841986138861143595,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(57,1,'combinations/knn_acc1',4,0.1875,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(58,1,'combinations/knn_subject_colour',4,0.1875,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(59,1,'combinations/knn_subject_shape',4,0.15625,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(60,1,'combinations/knn_object_colour',4,0.0625,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(61,1,'combinations/knn_object_shape',4,0.0625,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(62,1,'combinations/knn_relation',4,0.21875,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(63,1,'combinations/knn_ground',4,0.78125,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(64,1,'combinations/knn_words',4,0.39183160589410587215,'finite',1795433734.0195064544,8.6021999999999998465);
INSERT INTO scalar VALUES(65,1,'train/loss',5,4.0808539390563964843,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(66,1,'train/learning_rate',5,0.00098547090871302605967,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(67,1,'train/gradient_norm',5,0.53946799039840698242,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(68,1,'train/pairs_per_s',5,448.9750138994170925,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(69,1,'train/data_wait',5,0.14708328853566957072,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(70,1,'train/inv_tau',5,5.0,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(71,1,'system/cpu_percent',5,100.0,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(72,1,'system/memory_mib',5,905.99218750000000003,'finite',1795433734.2294518948,8.8122000000000006991);
INSERT INTO scalar VALUES(73,1,'train/loss',6,4.0773329734802246093,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(74,1,'train/learning_rate',6,0.00097426822097357269544,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(75,1,'train/gradient_norm',6,0.5047702789306640625,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(76,1,'train/pairs_per_s',6,230.2627330166275783,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(77,1,'train/data_wait',6,0.67662536436999010103,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(78,1,'train/inv_tau',6,5.0,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(79,1,'system/cpu_percent',6,100.0,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(80,1,'system/memory_mib',6,905.99218750000000003,'finite',1795433734.368994236,8.9517000000000006565);
INSERT INTO scalar VALUES(81,1,'train/loss',7,4.0636625289916992187,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(82,1,'train/learning_rate',7,0.0009599897218294121742,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(83,1,'train/gradient_norm',7,0.63626599311828613281,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(84,1,'train/pairs_per_s',7,2250.0973343116970682,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(85,1,'train/data_wait',7,0.34977509927266065004,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(86,1,'train/inv_tau',7,5.0,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(87,1,'system/cpu_percent',7,100.0,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(88,1,'system/memory_mib',7,905.99218750000000003,'finite',1795433734.3856801986,8.9684000000000008157);
INSERT INTO scalar VALUES(89,1,'train/loss',8,4.0537128448486328125,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(90,1,'train/learning_rate',8,0.00094272801282660489453,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(91,1,'train/gradient_norm',8,0.87399703264236450195,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(92,1,'train/pairs_per_s',8,1706.8027557328086914,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(93,1,'train/data_wait',8,0.26630288652777511781,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(94,1,'train/inv_tau',8,5.0,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(95,1,'system/cpu_percent',8,100.0,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(96,1,'system/memory_mib',8,905.99218750000000003,'finite',1795433734.4049005508,8.9876000000000004774);
INSERT INTO scalar VALUES(97,1,'val/knn_acc1',8,0.25,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(98,1,'val/knn_subject_colour',8,0.25,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(99,1,'val/knn_subject_shape',8,0.15625,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(100,1,'val/knn_object_colour',8,0.28125,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(101,1,'val/knn_object_shape',8,0.28125,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(102,1,'val/knn_relation',8,0.40625,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(103,1,'val/knn_ground',8,0.90625,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(104,1,'val/knn_words',8,0.45392862345987344818,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(105,1,'combinations/knn_acc1',8,0.21875,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(106,1,'combinations/knn_subject_colour',8,0.21875,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(107,1,'combinations/knn_subject_shape',8,0.1875,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(108,1,'combinations/knn_object_colour',8,0.03125,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(109,1,'combinations/knn_object_shape',8,0.03125,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(110,1,'combinations/knn_relation',8,0.28125,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(111,1,'combinations/knn_ground',8,0.8125,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(112,1,'combinations/knn_words',8,0.38193577256077249071,'finite',1795433734.5699148178,9.1525999999999996248);
INSERT INTO scalar VALUES(113,1,'train/loss',9,4.0136513710021972656,'finite',1795433736.0981836318,10.680899999999999394);
INSERT INTO scalar VALUES(114,1,'train/learning_rate',9,0.00092259504277189747275,'finite',1795433736.0981836318,10.680899999999999394);
INSERT INTO scalar VALUES(115,1,'train/gradient_norm',9,0.90323579311370849609,'finite',1795433736.0981836318,10.680899999999999394);
INSERT INTO scalar VALUES(116,1,'train/pairs_per_s',9,47.154168286874025284,'finite',1795433736.0981836318,10.680899999999999394);
INSERT INTO scalar VALUES(117,1,'train/data_wait',9,0.74938393152789439799,'finite',1795433736.0981836318,10.680899999999999394);
INSERT INTO scalar VALUES(118,1,'train/inv_tau',9,5.0,'finite',1795433736.0981836318,10.680899999999999394);
INSERT INTO scalar VALUES(119,1,'system/cpu_percent',9,100.0,'finite',1795433736.0981836318,10.680899999999999394);
INSERT INTO scalar VALUES(120,1,'system/memory_mib',9,906.03906249999999998,'finite',1795433736.0981836318,10.680899999999999394);
CREATE TABLE checkpoint (
	id INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	folder TEXT NOT NULL, 
	best INTEGER DEFAULT 0 NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_checkpoint PRIMARY KEY (id), 
	CONSTRAINT uq_checkpoint_run_step UNIQUE (run, step), 
	CONSTRAINT fk_checkpoint_run_run FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
)
 STRICT

;
INSERT INTO checkpoint VALUES(2,1,4,'checkpoints/step_000004',1,1795433734.120507717);
INSERT INTO checkpoint VALUES(3,1,8,'checkpoints/step_000008',0,1795433735.1741056442);
INSERT INTO checkpoint VALUES(4,1,9,'checkpoints/step_000009',0,1795433736.466692686);
CREATE TABLE snapshot (
	id INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	dataset TEXT NOT NULL, 
	split TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	d INTEGER NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_snapshot PRIMARY KEY (id), 
	CONSTRAINT uq_snapshot_run_step_dataset_split UNIQUE (run, step, dataset, split), 
	CONSTRAINT fk_snapshot_run_run FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
)
 STRICT

;
INSERT INTO snapshot VALUES(1,1,0,'scenes','renderings','snapshots/scenes-renderings@000000',32,8,1795433733.1733021736);
INSERT INTO snapshot VALUES(2,1,0,'scenes','combinations','snapshots/scenes-combinations@000000',32,8,1795433733.3564743995);
CREATE TABLE evaluation (
	id INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	dataset TEXT NOT NULL, 
	split TEXT NOT NULL, 
	metrics TEXT NOT NULL, 
	created_at REAL NOT NULL, 
	question TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_evaluation PRIMARY KEY (id), 
	CONSTRAINT uq_evaluation_run_step_dataset_split_question UNIQUE (run, step, dataset, split, question), 
	CONSTRAINT fk_evaluation_run_run FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
)
 STRICT

;
INSERT INTO evaluation VALUES(1,1,0,'scenes','renderings','{"knn_acc1": 0.21875, "knn_subject_colour": 0.21875, "knn_subject_shape": 0.15625, "knn_object_colour": 0.1875, "knn_object_shape": 0.375, "knn_relation": 0.375, "knn_ground": 0.875, "knn_words": 0.36529746295371296}',1795433732.9945628642,'{"classes": 0, "gallery": 0, "n": 32, "names": "", "protocol": "20 nearest among 128 training pairs", "sentences": "", "task": "knn", "templates": 0}');
INSERT INTO evaluation VALUES(2,1,0,'scenes','combinations','{"knn_acc1": 0.15625, "knn_subject_colour": 0.15625, "knn_subject_shape": 0.21875, "knn_object_colour": 0.0, "knn_object_shape": 0.03125, "knn_relation": 0.28125, "knn_ground": 0.875, "knn_words": 0.3910599816849817}',1795433733.2523910998,'{"classes": 0, "gallery": 0, "n": 32, "names": "", "protocol": "20 nearest among 128 training pairs", "sentences": "", "task": "knn", "templates": 0}');
INSERT INTO evaluation VALUES(3,1,4,'scenes','renderings','{"knn_acc1": 0.28125, "knn_subject_colour": 0.28125, "knn_subject_shape": 0.1875, "knn_object_colour": 0.3125, "knn_object_shape": 0.3125, "knn_relation": 0.40625, "knn_ground": 0.90625, "knn_words": 0.36841986138861144}',1795433733.9111654759,'{"classes": 0, "gallery": 0, "n": 32, "names": "", "protocol": "20 nearest among 128 training pairs", "sentences": "", "task": "knn", "templates": 0}');
INSERT INTO evaluation VALUES(4,1,4,'scenes','combinations','{"knn_acc1": 0.1875, "knn_subject_colour": 0.1875, "knn_subject_shape": 0.15625, "knn_object_colour": 0.0625, "knn_object_shape": 0.0625, "knn_relation": 0.21875, "knn_ground": 0.78125, "knn_words": 0.39183160589410587}',1795433733.953836441,'{"classes": 0, "gallery": 0, "n": 32, "names": "", "protocol": "20 nearest among 128 training pairs", "sentences": "", "task": "knn", "templates": 0}');
INSERT INTO evaluation VALUES(5,1,8,'scenes','renderings','{"knn_acc1": 0.25, "knn_subject_colour": 0.25, "knn_subject_shape": 0.15625, "knn_object_colour": 0.28125, "knn_object_shape": 0.28125, "knn_relation": 0.40625, "knn_ground": 0.90625, "knn_words": 0.45392862345987345}',1795433734.4135682582,'{"classes": 0, "gallery": 0, "n": 32, "names": "", "protocol": "20 nearest among 128 training pairs", "sentences": "", "task": "knn", "templates": 0}');
INSERT INTO evaluation VALUES(6,1,8,'scenes','combinations','{"knn_acc1": 0.21875, "knn_subject_colour": 0.21875, "knn_subject_shape": 0.1875, "knn_object_colour": 0.03125, "knn_object_shape": 0.03125, "knn_relation": 0.28125, "knn_ground": 0.8125, "knn_words": 0.3819357725607725}',1795433734.5030047893,'{"classes": 0, "gallery": 0, "n": 32, "names": "", "protocol": "20 nearest among 128 training pairs", "sentences": "", "task": "knn", "templates": 0}');
CREATE TABLE prediction (
	id INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	image TEXT NOT NULL, 
	labels TEXT NOT NULL, 
	templates TEXT NOT NULL, 
	probabilities TEXT NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_prediction PRIMARY KEY (id), 
	CONSTRAINT fk_prediction_run_run FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
)
 STRICT

;
CREATE TABLE dataset (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	facts TEXT DEFAULT '{}' NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_dataset PRIMARY KEY (id), 
	CONSTRAINT uq_dataset_fingerprint UNIQUE (fingerprint)
)
 STRICT

;
CREATE TABLE prompt_set (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	classes TEXT NOT NULL, 
	templates TEXT NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_prompt_set PRIMARY KEY (id), 
	CONSTRAINT uq_prompt_set_name UNIQUE (name)
)
 STRICT

;
CREATE TABLE layout (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	snapshot INTEGER, 
	method TEXT NOT NULL, 
	parameters TEXT NOT NULL, 
	file TEXT NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_layout PRIMARY KEY (id), 
	CONSTRAINT uq_layout_key UNIQUE ("key"), 
	CONSTRAINT fk_layout_snapshot_snapshot FOREIGN KEY(snapshot) REFERENCES snapshot (id) ON DELETE SET NULL
)
 STRICT

;
CREATE TABLE selection (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	dataset TEXT NOT NULL, 
	items TEXT NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_selection PRIMARY KEY (id)
)
 STRICT

;
CREATE TABLE note (
	id INTEGER NOT NULL, 
	run INTEGER, 
	step INTEGER, 
	about TEXT DEFAULT '' NOT NULL, 
	text TEXT NOT NULL, 
	created_at REAL NOT NULL, 
	CONSTRAINT pk_note PRIMARY KEY (id), 
	CONSTRAINT fk_note_run_run FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
)
 STRICT

;
CREATE TABLE setting (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_setting PRIMARY KEY (name)
)
 STRICT

;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('run',1);
INSERT INTO sqlite_sequence VALUES('scalar',120);
CREATE INDEX ix_prediction_run_image ON prediction (run, image);
COMMIT;
